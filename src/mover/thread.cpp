// The mover threads' lives: lease, serve, sleep. The protocol of falling asleep is
// docs/design/hot-path.md.
#include <pthread.h>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/os.hpp"
#include "base/topology.hpp"
#include "completion/barrier.hpp"
#include "mover/gate.hpp"
#include "mover/lease.hpp"
#include "mover/loop.hpp"
#include "mover/mover.hpp"
#include "mover/round_trip.hpp"
#include "mover/service_link.hpp"

namespace haul {
namespace {

constexpr std::uint64_t denied_pause_ns = 50'000'000;  // then the lease may be asked for again
constexpr std::uint64_t nap_ns = 1'000'000;            // in place of a membarrier
constexpr std::uint64_t round_trip_every_ns = 10'000'000'000;
constexpr std::uint64_t round_trip_pause_ns = 50'000'000;  // at least, between two measurements
constexpr unsigned rounds_between_clocks = 64;

struct Mover {
  pthread_t thread{};
  MoverLoop loop;
  unsigned index = 0;
};

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit Mover movers[max_movers];
constinit unsigned running = 0;  // threads made; under the mutex
constinit std::atomic<bool> stopping{false};
constinit std::atomic<int> first_cpu{-1};
constinit std::atomic<int> submitter_cpu{-1};  // of whoever woke the mover last
// Raised when the first mover wakes: the others follow.
constinit std::atomic<std::uint32_t> party{0};
constinit std::atomic<MoverHook> started_hook{nullptr};
constinit std::atomic<bool> hook_ran{false};
constinit Topology topology;  // written by the first mover before it raises topology_known
constinit std::atomic<bool> topology_known{false};
constinit RoundTripMeter meter;                     // the first mover's
constinit std::uint64_t round_trip_started_ns = 0;  // likewise
constinit bool forbidden = false;                   // a child by a bare clone

// Picks and takes a core: by knob, else the nearest one to the submitter that is not the
// submitter's own.
int choose_core(unsigned index) noexcept {
  if (const std::uint64_t wanted = knob_number(Knob::mover_cpu); wanted != knob_auto) {
    const auto cpu = static_cast<unsigned>(wanted) + index;
    return os::pin_thread(cpu) ? static_cast<int>(cpu) : -1;
  }
  std::uint16_t order[max_movers];
  const int near = submitter_cpu.load(std::memory_order_relaxed);
  const unsigned count =
      mover_candidates(topology, near < 0 ? topology.allowed[0].cpu : static_cast<unsigned>(near),
                       order, max_movers);
  if (index >= count) return -1;
  const unsigned cpu = topology.allowed[order[index]].cpu;
  return os::pin_thread(cpu) ? static_cast<int>(cpu) : -1;
}

// The distance is measured when a mover starts, when the cores turn out to have moved, and now and
// then; only in moments without work, and without waiting for the other core.
void watch_distance(MoverLoop& loop) noexcept {
  if (meter.busy()) {
    if (const double measured = meter.poll(); measured > 0) {
      loop.drift.reset();
      set_round_trip(measured);
      log(LogLevel::debug, "round trip to the mover's core: %.0f ns", measured);
    }
    return;
  }
  const bool unknown_or_moved = round_trip_now() <= 0 || loop.drift.drifted();
  const std::uint64_t pause_ns = unknown_or_moved ? round_trip_pause_ns : round_trip_every_ns;
  const std::uint64_t now = now_ns();
  if (round_trip_started_ns != 0 && now - round_trip_started_ns < pause_ns) return;
  round_trip_started_ns = now;
  meter.start(first_cpu.load(std::memory_order_relaxed),
              submitter_cpu.load(std::memory_order_relaxed));
}

// Serves the rings until there has been nothing to do for the spin time.
void serve(MoverLoop& loop, std::uint64_t spin_ns, bool watch = false) noexcept {
  std::uint64_t idle_since = 0;
  for (unsigned turn = 0; !stopping.load(std::memory_order_relaxed); ++turn) {
    if (loop.round()) {
      idle_since = 0;
      turn = 0;
      continue;
    }
    cpu_relax();
    if (turn % rounds_between_clocks != 0) continue;
    // A few quiet microseconds first: a helper that finds the mover busy spins in vain.
    if (watch && (meter.busy() || turn >= 16 * rounds_between_clocks)) watch_distance(loop);
    const std::uint64_t now = now_ns();
    if (idle_since == 0) {
      idle_since = now;
    } else if (now - idle_since >= spin_ns) {
      return;
    }
  }
}

// The first mover says it sleeps, and looks once more: a submit either is seen by that look, or
// sees the word.
bool fell_asleep(MoverLoop& loop) noexcept {
  gate.asleep.store(1, std::memory_order_relaxed);
  if (!asymmetric_barrier()) os::sleep_ns(nap_ns);  // store buffers have drained long before
  if (!loop.round()) return true;
  gate.asleep.store(0, std::memory_order_relaxed);
  return false;
}

void sleep_until_called(MoverLoop& loop, plan::MoverState state,
                        std::uint64_t timeout_ns) noexcept {
  set_mover_state(state);
  while (!fell_asleep(loop)) serve(loop, 0);
  while (gate.asleep.load(std::memory_order_acquire) == 1 &&
         !stopping.load(std::memory_order_acquire)) {
    if (os::futex_wait(&gate.asleep, 1, timeout_ns) == -ETIMEDOUT) break;
  }
}

void run_first(Mover& self) noexcept {
  os::widen_mask();  // the thread that made this one may be pinned
  if (auto read = read_topology(""); read) {
    if (!topology_known.load(std::memory_order_relaxed)) topology = *read;
    set_caches(topology.l2_bytes, topology.l3_bytes);
  }
  // Release: the further movers read it.
  topology_known.store(true, std::memory_order_release);
  // Where a cgroup grants less than two CPUs' time, spinning would come off the program's own.
  const bool may_spin = topology.cpu_quota <= 0 || topology.cpu_quota >= 2;
  const std::uint64_t spin_ns = may_spin ? knob_number(Knob::mover_spin_us) * 1000 : 0;
  while (!stopping.load(std::memory_order_acquire)) {
    gate.asleep.store(0, std::memory_order_relaxed);
    look_for_service();  // here rather than on a submit: it makes system calls
    if (take_lease(0) != Code::ok) {
      serve(self.loop, 0);
      sleep_until_called(self.loop, plan::MoverState::denied, denied_pause_ns);
      if (gate.asleep.load(std::memory_order_relaxed) == 1)
        sleep_until_called(self.loop, plan::MoverState::asleep, 0);
      continue;
    }
    const int cpu = choose_core(0);
    first_cpu.store(cpu, std::memory_order_relaxed);
    set_mover_state(plan::MoverState::awake);
    party.fetch_add(1, std::memory_order_release);
    os::futex_wake(&party, static_cast<int>(max_movers));
    serve(self.loop, 0);
    if (const MoverHook hook = started_hook.load(std::memory_order_relaxed);
        hook != nullptr && !hook_ran.exchange(true, std::memory_order_relaxed)) {
      hook();
    }
    serve(self.loop, spin_ns, true);
    drop_lease(0);
    first_cpu.store(-1, std::memory_order_relaxed);
    os::unpin_thread();
    if (!stopping.load(std::memory_order_acquire))
      sleep_until_called(self.loop, plan::MoverState::asleep, 0);
  }
  while (self.loop.round()) {
  }
}

// Movers beyond the first only add speed: they run while the first does, each with a lease of its
// own.
void run_further(Mover& self) noexcept {
  const std::uint64_t spin_ns = knob_number(Knob::mover_spin_us) * 1000;
  while (!stopping.load(std::memory_order_acquire)) {
    const std::uint32_t seen = party.load(std::memory_order_acquire);
    if (topology_known.load(std::memory_order_acquire) &&
        gate.state.load(std::memory_order_relaxed) == plan::MoverState::awake &&
        take_lease(self.index) == Code::ok) {
      choose_core(self.index);
      serve(self.loop, spin_ns);
      drop_lease(self.index);
      os::unpin_thread();
    }
    if (!stopping.load(std::memory_order_acquire)) os::futex_wait(&party, seen, 0);
  }
}

void* mover_body(void* argument) noexcept {
  Mover& self = *static_cast<Mover*>(argument);
  thread_slot.carrying = 1;  // a crash handler that calls exit() here must not join this thread
  char name[16] = "haul-mover";
  os::name_thread(name);
  if (self.index == 0) {
    run_first(self);
  } else {
    run_further(self);
  }
  return nullptr;
}

// Locked.
Code make_threads(Error* error) noexcept {
  if (forbidden) {
    *error = make_error(Code::not_supported, 0,
                        "No mover: this process was made by clone() without fork's handlers, so it "
                        "cannot make threads; use fork().");
    return Code::not_supported;
  }
  if (knob_number(Knob::mover_cores) == 0) {
    *error =
        make_error(Code::not_supported, 0, "No mover: HAUL_MOVER_CORES is 0; set it to 1 or more.");
    return Code::not_supported;
  }
  if (os::allowed_cpus() < 2 && knob_number(Knob::mover_cpu) == knob_auto) {
    *error = make_error(
        Code::not_supported, 0,
        "No mover: this process may use one CPU only; widen its affinity mask or cpuset to two.");
    return Code::not_supported;
  }
  const auto wanted = static_cast<unsigned>(knob_number(Knob::mover_cores));
  asymmetric_barrier_works();  // registers before any thread relies on it
  stopping.store(false, std::memory_order_relaxed);
  for (; running < wanted && running < max_movers; ++running) {
    Mover& mover = movers[running];
    mover.index = running;
    mover.loop.drive_devices(running == 0);
    const int result = os::start_thread(&mover.thread, mover_body, &mover);
    if (result < 0) {
      if (running != 0) break;
      *error = make_error(
          Code::no_memory, -result,
          "No mover: a thread could not be made (%s); raise the limit on processes (ulimit -u).",
          describe_errno(-result));
      return Code::no_memory;
    }
  }
  return Code::ok;
}

}  // namespace

Code wake_mover(Error* error) noexcept {
  // An own mover that is there is woken first; it looks for the node's service by itself.
  switch (gate.state.load(std::memory_order_relaxed)) {
    case plan::MoverState::awake: return Code::ok;
    case plan::MoverState::asleep: ring_doorbell(); return Code::ok;
    case plan::MoverState::denied:
      look_for_service();
      *error =
          lease_refusal() == Code::again
              ? make_error(Code::again, 0,
                           "No mover now: another process leases the node's mover core; copies "
                           "are inline until it is free.")
              : make_error(Code::again, 0,
                           "No mover now: the lease's socket cannot be made; raise ulimit -n, "
                           "or allow AF_UNIX sockets.");
      return Code::again;
    case plan::MoverState::none:
      // While a service is being attached to, no thread is worth making for this copy.
      if (look_for_service() && gate.service_bell.load(std::memory_order_relaxed) == nullptr) {
        *error =
            make_error(Code::again, 0, "No mover now: the node's service is being attached to.");
        return Code::again;
      }
      break;
    case plan::MoverState::impossible: look_for_service(); break;
  }
  // A signal handler that forks must not find the lock held by its own thread.
  os::SignalMask saved;
  os::block_signals(&saved);
  pthread_mutex_lock(&mutex);
  Code code = Code::ok;
  if (gate.closed.load(std::memory_order_relaxed)) {
    code = Code::closed;
    *error = make_error(code, 0, "haul_shutdown() was called; there are no movers after it.");
  } else if (gate.held.load(std::memory_order_relaxed)) {
    code = Code::again;
    *error = make_error(code, 0, "No mover now: the process forks or exits.");
  } else if (running == 0) {
    submitter_cpu.store(os::current_cpu(), std::memory_order_relaxed);
    code = make_threads(error);
  }
  pthread_mutex_unlock(&mutex);
  os::restore_signals(saved);
  if (code == Code::not_supported || code == Code::no_memory) {
    set_mover_state(plan::MoverState::impossible);
    log(LogLevel::info, "%s", error->sentence);
  }
  return code;
}

void ring_doorbell() noexcept {
  std::uint32_t asleep = 1;
  if (gate.asleep.compare_exchange_strong(asleep, 0, std::memory_order_release)) {
    submitter_cpu.store(os::current_cpu(), std::memory_order_relaxed);
    os::futex_wake(&gate.asleep, 1);
  }
}

void stop_movers() noexcept {
  pthread_mutex_lock(&mutex);
  stopping.store(true, std::memory_order_release);
  party.fetch_add(1, std::memory_order_release);
  os::futex_wake(&party, static_cast<int>(max_movers));
  gate.asleep.store(0, std::memory_order_release);
  os::futex_wake(&gate.asleep, 1);
  for (unsigned i = 0; i < running; ++i) pthread_join(movers[i].thread, nullptr);
  for (unsigned i = 0; i < running; ++i) drop_lease(i);
  meter.finish();
  running = 0;
  first_cpu.store(-1, std::memory_order_relaxed);
  pthread_mutex_unlock(&mutex);
  set_mover_state(plan::MoverState::none);
}

void lock_movers() noexcept {
  pthread_mutex_lock(&mutex);
}

void unlock_movers() noexcept {
  pthread_mutex_unlock(&mutex);
}

void forget_movers() noexcept {
  mutex = PTHREAD_MUTEX_INITIALIZER;
  running = 0;
  stopping.store(false, std::memory_order_relaxed);
  first_cpu.store(-1, std::memory_order_relaxed);
  meter.forget();
  for (Mover& mover : movers) mover.loop.begin(true);
  drop_inherited_leases();
}

void forbid_movers() noexcept {
  forget_movers();
  forbidden = true;
}

int mover_cpu() noexcept {
  return first_cpu.load(std::memory_order_relaxed);
}

void on_mover_started(MoverHook hook) noexcept {
  started_hook.store(hook, std::memory_order_relaxed);
}

}  // namespace haul
