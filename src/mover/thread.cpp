// The mover threads' lives: lease, serve, sleep.
//
// A mover serves the rings on a leased core until nothing has come for the spin time. Then it falls
// asleep on the word gate.asleep, and a submit that comes at that very moment must not be missed.
// Each side writes first and looks second: the mover stores `sleeps`, issues a membarrier and looks
// at all rings once more; a submit publishes and then loads `asleep`, with a compiler barrier alone
// between the two, since the mover's membarrier stands in for the fence of every submitter. So
// either the last look finds the request, or the submit finds the word and rings the bell. A mover
// that sleeps while no thread has a ring retires (roster.cpp), so that a process whose own threads
// have ended can end. docs/design/hot-path.md has the proof's steps, and tests/model/sleep.pml
// checks them.
#include <cerrno>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/machine/cpu.hpp"
#include "base/machine/topology.hpp"
#include "base/os/os.hpp"
#include "base/sync/barrier.hpp"
#include "client/link.hpp"
#include "execution/drive.hpp"
#include "gate/gate.hpp"
#include "mover/cores/lease.hpp"
#include "mover/cores/round_trip.hpp"
#include "mover/cores/survey.hpp"
#include "mover/thread.hpp"
#include "request/rights.hpp"
#include "request/rings.hpp"

namespace haul {

constinit Crew crew;

namespace {

constexpr std::uint64_t retire_after_ns = 100'000'000;  // how long no thread may have had a ring

constexpr std::uint64_t denied_pause_ns = 50'000'000;  // before a refused lease is asked for again
constexpr std::uint64_t nap_ns = 1'000'000;            // in place of a membarrier
constexpr std::uint64_t round_trip_every_ns = 10'000'000'000;
constexpr std::uint64_t round_trip_pause_ns = 50'000'000;  // at least, between two measurements
constexpr unsigned rounds_between_clocks = 64;
constexpr std::uint64_t lease_every_ns = 20'000'000;  // is the lease still ours?
constexpr unsigned no_lease = max_movers;
// For how long a mover serves on any core while the survey of the machine is under way; after that
// it guesses.
constexpr std::uint64_t survey_patience_ns = 50'000'000, survey_step_ns = 200'000;

constinit std::atomic<MoverHook> started_hook{nullptr};
constinit Topology guess;  // of the machine; written by the first mover before it raises guessed
constinit std::atomic<bool> guessed{false};
constinit bool caches_told = false;                 // to the gate; the first mover's
constinit RoundTripMeter meter;                     // the first mover's
constinit std::uint64_t round_trip_started_ns = 0;  // likewise

// What the survey found, or else the guess.
const Topology& topology_now() noexcept {
  const Topology* known = surveyed();
  return known != nullptr ? *known : guess;
}

// Serves what has been submitted while the survey is under way.
void await_machine(MoverLoop& loop) noexcept {
  if (const auto mask = guess_topology(); mask && !guessed.load(std::memory_order_relaxed))
    guess = *mask;
  guessed.store(true, std::memory_order_release);  // the further movers read it
  const std::uint64_t until_ns = now_ns() + survey_patience_ns;
  while (!await_survey(survey_step_ns) && now_ns() < until_ns &&
         !crew.stopping.load(std::memory_order_acquire)) {
    loop.round();
  }
}

void tell_caches() noexcept {
  if (const Topology* known = surveyed(); known != nullptr && !caches_told) {
    set_caches(known->l2_bytes, known->l3_bytes);
    caches_told = true;
  }
}

// Picks and takes a core: the one that the knob names, else the nearest to the submitter that is
// not the submitter's own.
int choose_core(unsigned index) noexcept {
  if (const std::uint64_t wanted = knob_number(Knob::mover_cpu); wanted != knob_auto) {
    const auto cpu = static_cast<unsigned>(wanted) + index;
    return os::pin_thread(cpu) ? static_cast<int>(cpu) : -1;
  }
  const Topology& topology = topology_now();
  std::uint16_t order[max_movers];
  const int near = crew.submitter_cpu.load(std::memory_order_relaxed);
  const unsigned count =
      mover_candidates(topology, near < 0 ? topology.allowed[0].cpu : static_cast<unsigned>(near),
                       order, max_movers);
  if (index >= count) return -1;
  const unsigned cpu = topology.allowed[order[index]].cpu;
  return os::pin_thread(cpu) ? static_cast<int>(cpu) : -1;
}

// Runs tune/'s hook: at each waking, and when the distance has been measured again.
void run_hook() noexcept {
  if (const MoverHook hook = started_hook.load(std::memory_order_relaxed); hook != nullptr) hook();
}

// Measures the distance when a mover starts, when the cores seem to have moved, and now and then;
// only in moments without work, and without waiting for the other core.
void watch_distance(MoverLoop& loop) noexcept {
  if (meter.busy()) {
    if (const double measured = meter.poll(); measured > 0) {
      loop.drift.reset();
      set_round_trip(measured);
      run_hook();
      log(LogLevel::debug, "round trip to the mover's core: %.0f ns", measured);
    }
    return;
  }
  const bool unknown_or_moved = round_trip_now() <= 0 || loop.drift.drifted();
  const std::uint64_t pause_ns = unknown_or_moved ? round_trip_pause_ns : round_trip_every_ns;
  const std::uint64_t now = now_ns();
  if (round_trip_started_ns != 0 && now - round_trip_started_ns < pause_ns) return;
  round_trip_started_ns = now;
  meter.start(crew.first_cpu.load(std::memory_order_relaxed),
              crew.submitter_cpu.load(std::memory_order_relaxed));
}

// Serves the rings until there has been nothing to do for the spin time, or until the program has
// closed the socket of the lease under which the core is taken, since another process may then take
// it.
void serve(MoverLoop& loop, std::uint64_t spin_ns, unsigned lease = no_lease) noexcept {
  const bool watch = lease == 0;
  std::uint64_t idle_since = 0, lease_seen = now_ns();
  for (unsigned turn = 0; !crew.stopping.load(std::memory_order_relaxed); ++turn) {
    if (loop.round()) {
      idle_since = 0;
      turn = 0;
      continue;
    }
    cpu_relax();
    if (turn % rounds_between_clocks != 0) continue;
    // After a few quiet microseconds: a helper that finds the mover busy spins in vain.
    if (watch && (meter.busy() || turn >= 16 * rounds_between_clocks)) watch_distance(loop);
    const std::uint64_t now = now_ns();
    if (lease != no_lease && now - lease_seen >= lease_every_ns) {
      if (!holds_lease(lease)) return;
      note_mover_rights(rights_number());  // the process may have changed its user
      lease_seen = now;
    }
    if (idle_since == 0) {
      idle_since = now;
    } else if (now - idle_since >= spin_ns) {
      return;
    }
  }
}

// Announces that the first mover sleeps, and looks once more: a submit is either seen by that look,
// or sees the announcement.
bool fell_asleep(MoverLoop& loop) noexcept {
  gate.asleep.store(mover_sleeps, std::memory_order_relaxed);
  if (!asymmetric_barrier()) os::sleep_ns(nap_ns);  // store buffers have drained long before
  if (!loop.round()) return true;
  gate.asleep.store(mover_runs, std::memory_order_relaxed);
  return false;
}

// Sleeps until the mover is called, or for timeout_ns (0: no limit). True if it has retired
// instead, because no thread has a ring any more: so a process whose own threads have all ended can
// end.
bool sleep_until_called(MoverThread& self, plan::MoverState state,
                        std::uint64_t timeout_ns) noexcept {
  rest_left_rings();
  set_mover_state(state);
  movers_drive(false);
  while (!fell_asleep(self.loop)) serve(self.loop, 0);
  while (!crew.stopping.load(std::memory_order_acquire)) {
    std::uint32_t word = gate.asleep.load(std::memory_order_acquire);
    // A thread has given up its ring. Announce sleep again before looking, so that the next one to
    // do so is not missed.
    if (word == mover_looks &&
        gate.asleep.compare_exchange_strong(word, mover_sleeps, std::memory_order_acq_rel))
      word = mover_sleeps;
    if (word != mover_sleeps) return false;
    const bool lasting = timeout_ns == 0;
    const bool needed = !lasting || any_ring_owned();
    const std::uint64_t wait_ns = !lasting ? timeout_ns : needed ? 0 : retire_after_ns;
    if (os::futex_wait(&gate.asleep, mover_sleeps, wait_ns) != -ETIMEDOUT) continue;
    if (!lasting) return false;
    if (needed || any_ring_owned()) continue;
    meter.finish();
    if (retire(self)) return true;
  }
  return false;
}

// True if it has retired.
bool run_first(MoverThread& self) noexcept {
  os::widen_mask();  // its maker may be pinned
  await_machine(self.loop);
  while (!crew.stopping.load(std::memory_order_acquire)) {
    note_mover_rights(rights_number());
    gate.asleep.store(mover_runs, std::memory_order_relaxed);
    tell_caches();
    // Where a cgroup grants less than two CPUs' time, spinning would be taken from the program's
    // own.
    const double cpu_quota = topology_now().cpu_quota;
    const bool may_spin = cpu_quota <= 0 || cpu_quota >= 2;
    const std::uint64_t spin_ns = may_spin ? knob_number(Knob::mover_spin_us) * 1000 : 0;
    ask_for_service();
    if (take_lease(0) != Code::ok) {
      serve(self.loop, 0);
      sleep_until_called(self, plan::MoverState::denied, denied_pause_ns);
      if (gate.asleep.load(std::memory_order_relaxed) != mover_runs &&
          sleep_until_called(self, plan::MoverState::asleep, 0)) {
        return true;
      }
      continue;
    }
    const int cpu = choose_core(0);
    crew.first_cpu.store(cpu, std::memory_order_relaxed);
    set_mover_state(plan::MoverState::awake);
    movers_drive(true);
    crew.party.fetch_add(1, std::memory_order_release);
    os::futex_wake(&crew.party, static_cast<int>(max_movers));
    serve(self.loop, 0);
    run_hook();
    serve(self.loop, spin_ns, 0);
    drop_lease(0);
    crew.first_cpu.store(-1, std::memory_order_relaxed);
    os::unpin_thread();
    if (!crew.stopping.load(std::memory_order_acquire) &&
        sleep_until_called(self, plan::MoverState::asleep, 0)) {
      return true;
    }
  }
  while (self.loop.round()) {
  }
  return false;
}

// Movers beyond the first only add speed: they run while the first does, each with a lease of its
// own. True if it has retired.
bool run_further(MoverThread& self) noexcept {
  const std::uint64_t spin_ns = knob_number(Knob::mover_spin_us) * 1000;
  while (!crew.stopping.load(std::memory_order_acquire)) {
    const std::uint32_t seen = crew.party.load(std::memory_order_acquire);
    if (guessed.load(std::memory_order_acquire) &&
        gate.state.load(std::memory_order_relaxed) == plan::MoverState::awake &&
        take_lease(self.index) == Code::ok) {
      choose_core(self.index);
      serve(self.loop, spin_ns, self.index);
      drop_lease(self.index);
      os::unpin_thread();
    }
    if (first_is_gone() && retire(self)) return true;
    if (!crew.stopping.load(std::memory_order_acquire)) os::futex_wait(&crew.party, seen, 0);
  }
  return false;
}

}  // namespace

void* live(void* argument) noexcept {
  MoverThread& self = *static_cast<MoverThread*>(argument);
  thread_slot.carrying = 1;  // a crash handler that calls exit() here must not join this thread
  char name[16] = "haul-mover";
  os::name_thread(name);
  if (self.index == 0 ? run_first(self) : run_further(self)) return nullptr;
  self.become(Life::over);
  os::futex_wake(&self.life, 1);
  return nullptr;
}

void tidy_after_first_mover() noexcept {
  meter.finish();
  crew.first_cpu.store(-1, std::memory_order_relaxed);
}

void forget_first_mover() noexcept {
  meter.forget();
  crew.first_cpu.store(-1, std::memory_order_relaxed);
  forget_survey();
}

int mover_cpu() noexcept {
  return crew.first_cpu.load(std::memory_order_relaxed);
}

void on_mover_started(MoverHook hook) noexcept {
  started_hook.store(hook, std::memory_order_relaxed);
}

}  // namespace haul
