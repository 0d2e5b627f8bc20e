// Gathers what is known of the movers and shows it to submits; plan/ says what follows from it.
#include "gate/gate.hpp"

#include <pthread.h>

#include <bit>

#include "base/knobs.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/sync/backoff.hpp"
#include "base/sync/barrier.hpp"
#include "base/sync/quiet_lock.hpp"
#include "base/sync/seqlock.hpp"
#include "engine/plugin.hpp"
#include "engine/registry.hpp"
#include "plan/thresholds.hpp"
#include "request/rights.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constexpr std::uint64_t default_start_bytes = 1u << 20;

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit plan::Calibration figures;
constinit std::atomic<double> round_trip_ns{0};  // written under the lock
constinit std::size_t l2_bytes = 1u << 20,
                      l3_bytes = 32u << 20;       // defaults until the mover has read the topology
constinit bool shut = false;                      // for good
constinit unsigned holds = 0;                     // how many holds there are now
constinit thread_local unsigned own_holds = 0;    // of these, the calling thread's
constinit std::atomic<bool> kernel_reach{false};  // the service's
constinit double service_round_trip_ns = 0;
constinit Seqlock<plan::Circumstances> published;

static_assert(knob_auto == UINT64_MAX);  // as plan::Settings::inline_bytes means it

plan::Settings read_settings() noexcept {
  plan::Settings settings;
  settings.mover_caller = knob_number(Knob::plan_mover) == 1;
  settings.mover_thread = knob_number(Knob::plan_mover) == 2;
  settings.mover_service = knob_number(Knob::plan_mover) == 3;
  settings.service_off = knob_number(Knob::service_use) == 1;
  settings.block_log2 =
      static_cast<std::uint32_t>(std::countr_zero(knob_number(Knob::copy_block_bytes)));
  settings.inline_bytes = knob_number(Knob::plan_inline_bytes);
  if (const Engine* engine = engine_by_name(knob_text(Knob::plan_engine)); engine != nullptr) {
    for (std::size_t i = 0; i < engine_count(); ++i) {
      if (&engine_at(i) == engine) settings.engine = static_cast<int>(i);
    }
  }
  return settings;
}

// Locked. What the planner knows of the movers, except the thresholds that follow from it.
plan::Inputs gather_inputs() noexcept {
  plan::Inputs inputs;
  inputs.mover = gate.state.load(std::memory_order_relaxed);
  inputs.held = gate.held.load(std::memory_order_relaxed);
  inputs.round_trip_ns = round_trip_now();
  inputs.l2_bytes = l2_bytes;
  inputs.l3_bytes = l3_bytes;
  inputs.calibration = figures;
  inputs.settings = read_settings();
  inputs.service.attached = gate.service_bell.load(std::memory_order_relaxed) != nullptr;
  inputs.service.reaches_memory = kernel_reach.load(std::memory_order_relaxed);
  inputs.service.round_trip_ns = service_round_trip_ns;
  return inputs;
}

// The engine that takes plain requests of all lengths, driven by their callers: the one that the
// settings ask for.
std::uint8_t driven_engine(const plan::Settings& settings) noexcept {
  if (!settings.mover_caller || settings.engine < 0) return Gate::no_engine;
  const Engine& engine = engine_at(static_cast<std::size_t>(settings.engine));
  const bool asked = engine.facts().device && !engine.has_memory();
  return asked ? static_cast<std::uint8_t>(settings.engine) : Gate::no_engine;
}

void show(const plan::Thresholds& thresholds, plan::BasicThresholds<GateWord>* words) noexcept {
  words->piece_from = thresholds.piece_from;
  words->mover_from = thresholds.mover_from;
  words->inline_below = thresholds.inline_below;
}

void refresh() noexcept;

void note_device() noexcept {
  const QuietLock lock(mutex);
  refresh();
}

// Locked. Something has changed: updates what submits read.
void refresh() noexcept {
  on_device_opened(note_device);
  plan::Inputs inputs = gather_inputs();
  inputs.engine_count = engine_count();
  for (std::size_t i = 0; i < inputs.engine_count; ++i) inputs.engines[i] = engine_view(i);
  inputs.thresholds = plan::threshold_set_of(inputs);
  published.write(inputs);
  const plan::ThresholdSet thresholds = plan::short_road_of(inputs);
  // A thread that is asked for gets mapped memory, too; the short road would give that to the
  // service.
  const bool by_plan = inputs.settings.engine >= 0 || inputs.settings.mover_thread;
  const bool by_keys = mover_keys.keyed.load(std::memory_order_relaxed);
  const std::uint8_t driven = driven_engine(inputs.settings);
  const std::uint64_t device_from = driven != Gate::no_engine ? 0 : plan::device_from_bytes(inputs);
  gate.driven_engine.store(driven, std::memory_order_relaxed);
  gate.device_from = device_from;
  gate.special.store(
      static_cast<std::uint8_t>((by_plan ? Gate::by_plan : 0) | (by_keys ? Gate::by_keys : 0) |
                                (device_from != UINT64_MAX ? Gate::by_device : 0)),
      std::memory_order_relaxed);
  gate.block_log2.store(static_cast<std::uint8_t>(inputs.settings.block_log2),
                        std::memory_order_relaxed);
  gate.min_chunk_bytes.store(
      static_cast<std::uint32_t>(plan::min_chunk_bytes(plan::round_trip_ns(inputs))),
      std::memory_order_relaxed);
  gate.worth.inline_below = thresholds.worth.inline_below;
  gate.worth.mover_from = thresholds.worth.mover_from;
  show(thresholds.own, &gate.own);
  show(thresholds.mapped, &gate.mapped);
  gate.mapped_asleep_from = thresholds.mapped_asleep_from;
}

}  // namespace

// Until the first refresh() it is as in a process without a mover, whose figures are not known.
constinit Gate gate{{default_start_bytes, default_start_bytes, default_start_bytes},
                    {plan::first_start_from_bytes, plan::first_start_from_bytes},
                    {0},
                    {plan::MoverState::none},
                    {64u << 10},
                    {12},
                    {0},
                    {false},
                    {false},
                    {0},
                    {UINT64_MAX, UINT64_MAX, UINT64_MAX},
                    UINT64_MAX,
                    {0},
                    {nullptr},
                    UINT64_MAX,
                    {Gate::no_engine}};

void fill_inputs(plan::Inputs* inputs) noexcept {
  if (!published.read(inputs)) {
    const QuietLock lock(mutex);
    refresh();
    published.read(inputs);
  }
  const std::atomic<std::uint32_t>* bell = gate.service_bell.load(std::memory_order_acquire);
  inputs->service.attached = bell != nullptr;
  inputs->service.asleep = bell != nullptr && bell->load(std::memory_order_relaxed) != 0;
}

void set_calibration(const plan::Calibration& calibration) noexcept {
  const QuietLock lock(mutex);
  figures = calibration;
  refresh();
}

void set_mover_state(plan::MoverState state) noexcept {
  const QuietLock lock(mutex);
  gate.state.store(state, std::memory_order_relaxed);
  refresh();
}

void set_round_trip(double measured_ns) noexcept {
  const QuietLock lock(mutex);
  round_trip_ns.store(measured_ns, std::memory_order_relaxed);
  refresh();
}

void set_caches(std::size_t l2, std::size_t l3) noexcept {
  const QuietLock lock(mutex);
  if (l2 != 0) l2_bytes = l2;
  if (l3 != 0) l3_bytes = l3;
  refresh();
}

void set_service(std::atomic<std::uint32_t>* bell, bool reaches_memory) noexcept {
  const QuietLock lock(mutex);
  kernel_reach.store(reaches_memory, std::memory_order_relaxed);
  // Release: the board is mapped, and this process is registered for barriers.
  gate.service_bell.store(bell, std::memory_order_release);
  refresh();
}

void forget_kernel_reach() noexcept {
  kernel_reach.store(false, std::memory_order_relaxed);
}

void set_service_arena(std::uintptr_t base, std::size_t bytes) noexcept {
  // Both change while nobody relies on them: an arena is made once, and with half of the change
  // maps() is either false, or true for a range that lies in the arena all the same.
  gate.mapped_bytes.store(0, std::memory_order_relaxed);
  gate.mapped_base.store(base, std::memory_order_release);
  gate.mapped_bytes.store(bytes, std::memory_order_release);
}

void set_service_round_trip(double measured_ns) noexcept {
  const QuietLock lock(mutex);
  service_round_trip_ns = measured_ns;
  refresh();
}

bool service_reaches_memory() noexcept {
  return kernel_reach.load(std::memory_order_relaxed);
}

double round_trip_now() noexcept {
  return round_trip_ns.load(std::memory_order_relaxed);
}

void hold_gate(std::uint64_t patience_ns) noexcept {
  {
    const QuietLock lock(mutex);
    ++holds;
    ++own_holds;
    gate.held.store(true, std::memory_order_relaxed);
    refresh();
  }
  await_publishers(patience_ns);
}

void await_publishers(std::uint64_t patience_ns) noexcept {
  // A submitter raises `publishing`, then looks at the gate. After the barrier, either it has seen
  // the gate held or this sees it publishing. (Without membarrier: store buffers have drained
  // within the nap.)
  if (!asymmetric_barrier()) os::sleep_ns(1'000'000);
  const std::uint64_t begun = now_ns();
  for_each_ring([&](const Ring& ring) {
    for (Backoff backoff; &ring != thread_slot.ring &&
                          ring.publishing.load(std::memory_order_acquire) &&
                          now_ns() - begun < patience_ns;)
      backoff.pause();
  });
}

void release_gate(After after) noexcept {
  const QuietLock lock(mutex);
  if (after == After::shut) shut = true;
  if (own_holds != 0) {
    --own_holds;
    --holds;
  }
  gate.held.store(shut || holds != 0, std::memory_order_relaxed);
  refresh();
}

namespace {

// For a child: threads that held the lock or the gate, or were writing, do not exist here.
void begin_anew(plan::MoverState state) noexcept {
  mutex = PTHREAD_MUTEX_INITIALIZER;
  holds = own_holds = 0;
  gate.service_bell.store(nullptr, std::memory_order_relaxed);
  gate.mapped_bytes.store(0, std::memory_order_relaxed);
  gate.state.store(state, std::memory_order_relaxed);
  gate.asleep.store(0, std::memory_order_relaxed);
  gate.held.store(shut, std::memory_order_relaxed);
  published.remake();
  refresh();
}

}  // namespace

void reset_gate_in_child() noexcept {
  begin_anew(plan::MoverState::none);
}

void remake_gate() noexcept {
  begin_anew(plan::MoverState::impossible);
}

}  // namespace haul
