// The gate: what a submit must know of the movers, in one line that every thread reads and that is
// rarely written.
//
// Writers change it under a lock when a mover's state, the distance, the figures or the service
// change; submits read single words without a lock and without order, and each decision is right
// with old words too, except two, which are checked at the moment of publishing. `held`: a
// submitter raises its ring's `publishing` and then looks at `held`; a thread that holds the gate
// stores `held`, issues a barrier on all CPUs, and then waits until no ring is `publishing`.
// `asleep`: a submitter publishes and then looks at the word; a mover that is falling asleep stores
// the word, issues the barrier, and then looks at the rings once more. In both cases one of the two
// sees the other, and the submitter pays for no fence (mover/short_road.hpp, mover/thread.cpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "plan/plan.hpp"

namespace haul {

// Values of Gate::asleep. A thread that has published rings the bell unless the mover runs. sleeps:
// it sleeps or is about to. looks: the same, and it has been woken to see whether it is still
// needed. gone: there is no mover thread, since no thread had a ring; the bell makes one.
inline constexpr std::uint32_t mover_runs = 0, mover_sleeps = 1, mover_looks = 2, mover_gone = 3;

// A threshold that threads read while it is replaced. Relaxed: it pairs with nothing. A copy that
// is routed by an old one, or by one old and one new, is correct all the same, since publish()
// checks whether it may be handed over.
class GateWord {
 public:
  constexpr GateWord() noexcept : value_(0) {}
  constexpr GateWord(std::uint64_t value) noexcept : value_(value) {}
  GateWord& operator=(std::uint64_t value) noexcept {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  operator std::uint64_t() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_;
};

// The thresholds of a plan::ThresholdSet, by the same names, among the other words that a submit
// reads.
struct alignas(64) Gate {
  plan::BasicThresholds<GateWord> own;
  struct Worth {
    GateWord inline_below, mover_from;
  } worth;
  std::atomic<std::uint32_t> asleep;  // one of mover_runs ... mover_gone; futex word
  std::atomic<plan::MoverState> state;
  std::atomic<std::uint32_t> min_chunk_bytes;
  std::atomic<std::uint8_t> block_log2;
  // If not 0, plain requests must be looked at more closely; by_plan sends all of them down the
  // long road.
  static constexpr std::uint8_t by_plan = 1;  // knobs ask for something special
  static constexpr std::uint8_t by_keys = 2;  // the CPU has protection keys (rights.hpp)
  // From device_from bytes on a device may do better: the long road weighs it.
  static constexpr std::uint8_t by_device = 4;
  std::atomic<std::uint8_t> special;
  std::atomic<bool> held;    // nothing may be published: a fork is under way, or all is shut down
  std::atomic<bool> closed;  // haul_shutdown() was called
  // Bytes of this process's arena that the node's service knows; 0: there is no service, or it does
  // not know it. A copy without a service reads no more than this.
  std::atomic<std::size_t> mapped_bytes;

  // For memory that the service has mapped, while there is a service.
  alignas(64) plan::BasicThresholds<GateWord> mapped;
  GateWord mapped_asleep_from;
  std::atomic<std::uintptr_t> mapped_base;  // of the arena
  // The word that says whether the service sleeps (Board::asleep), while this process is attached
  // to one; else nullptr.
  std::atomic<std::atomic<std::uint32_t>*> service_bell;

  // With by_device: of which length on, and the engine (its number) that takes plain requests of
  // that length without more ado, driven by their callers; no_engine: the planner must be asked.
  static constexpr std::uint8_t no_engine = 0xff;
  GateWord device_from;
  std::atomic<std::uint8_t> driven_engine;

  // Has a mover been called that is awake in a moment?
  bool mover_wakes() const noexcept {
    return state.load(std::memory_order_relaxed) == plan::MoverState::asleep &&
           asleep.load(std::memory_order_relaxed) == mover_runs;
  }

  // Which dedicated core would be asked? `is_mapped`: the service has all of the memory mapped.
  plan::Candidate candidate(bool is_mapped) const noexcept {
    if (!is_mapped) return plan::Candidate::thread;
    // Acquire: pairs with set_service(), before which the board is mapped.
    const std::atomic<std::uint32_t>* bell = service_bell.load(std::memory_order_acquire);
    const bool sleeps = bell != nullptr && bell->load(std::memory_order_relaxed) != 0;
    return sleeps ? plan::Candidate::sleeping_service : plan::Candidate::service;
  }

  // Does the node's service have this range mapped? If so it is asked, and not a mover of this
  // process.
  bool maps(std::uintptr_t address, std::size_t length) const noexcept {
    // Acquire: pairs with set_service_arena(), which stores the base before.
    const std::size_t size = mapped_bytes.load(std::memory_order_acquire);
    if (size == 0) return false;
    const std::uintptr_t offset = address - mapped_base.load(std::memory_order_relaxed);
    return offset < size && length <= size - offset;
  }
};
static_assert(sizeof(Gate) == 128);
extern constinit Gate gate;

// How many bytes worth handing over a thread copies inline before it wakes a sleeping mover for the
// next ones: a wake costs 5 to 10 us, this many bytes 100 us and more.
inline constexpr std::uint64_t invest_bytes = 2u << 20;

// Fills in the planner's inputs as they are now, except the request and what the engines say of it.
// Thread-safe; lock-free except in the first call.
void fill_inputs(plan::Inputs* inputs) noexcept;

// Takes new figures from tune/; the thresholds follow. Thread-safe; takes a lock.
void set_calibration(const plan::Calibration& calibration) noexcept;

// The link to the node's service has been made (bell: its word; reaches_memory: it may use
// process_vm_readv on this process) or is gone (nullptr). Thread-safe; takes the gate's lock.
void set_service(std::atomic<std::uint32_t>* bell, bool reaches_memory) noexcept;
// Notes that the service knows this process's arena; 0 bytes: it does not. The link's thread only.
void set_service_arena(std::uintptr_t base, std::size_t bytes) noexcept;
// Notes how far the service's core is; 0: unknown. Thread-safe; takes the gate's lock.
void set_service_round_trip(double round_trip_ns) noexcept;
bool service_reaches_memory() noexcept;
// Notes that the service may not use process_vm_readv any more. Takes no lock.
void forget_kernel_reach() noexcept;

// Waits until every thread between looking at the gate and publishing has published, or for
// patience_ns. Takes no lock.
void await_publishers(std::uint64_t patience_ns = UINT64_MAX) noexcept;

// For the mover: its state has changed, and the thresholds with it. Takes the gate's lock.
void set_mover_state(plan::MoverState state) noexcept;
void set_round_trip(double round_trip_ns) noexcept;
void set_caches(std::size_t l2_bytes, std::size_t l3_bytes) noexcept;  // 0: unknown
double round_trip_now() noexcept;

// Holds the gate shut: every copy is inline until release. Returns once no thread is between
// passing the gate and publishing, or after patience_ns. Used around fork and shutdown, by any
// number of threads at once; no lock is held in between.
void hold_gate(std::uint64_t patience_ns) noexcept;
// open: copies may go to movers again, unless others hold the gate or it was ever left shut. shut:
// never again, the movers are about to stop.
enum class After : std::uint8_t { open, shut };
void release_gate(After after) noexcept;
// For a child of fork: nobody holds the gate and there is no mover; any lock or half-written figure
// that was copied is made new.
void reset_gate_in_child() noexcept;
// For a bare clone()'s child: the same, and there never will be a mover.
void remake_gate() noexcept;

}  // namespace haul
