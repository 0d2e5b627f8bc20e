// Makes the mover threads when they are needed, wakes them, and ends them.
//
// One mutex orders making, retiring and stopping. Waking needs none: the word gate.asleep says what
// the first mover does, and each change of it is one compare-and-swap from a known state:
//   runs -> sleeps         by the mover, which then looks at the rings once more (thread.cpp)
//   sleeps, looks -> runs  by a submit that rings the bell: it alone then wakes the mover
//   sleeps -> looks        by a thread that has given up the last ring: the mover is to see whether
//                          it is still needed
//   sleeps -> gone         by the mover, under the mutex: it retires. A bell that is rung after
//                          that finds `gone`, takes the mutex and makes threads again.
// Movers beyond the first follow it: they wait for `crew.party` to be raised.
#include <pthread.h>

#include <algorithm>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/sync/barrier.hpp"
#include "base/sync/quiet_lock.hpp"
#include "base/thread/aide.hpp"
#include "base/thread/own_threads.hpp"
#include "client/link.hpp"
#include "execution/drive.hpp"
#include "execution/help.hpp"
#include "gate/gate.hpp"
#include "mover/cores/lease.hpp"
#include "mover/cores/survey.hpp"
#include "mover/thread.hpp"
#include "request/rights.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // which threads there are
constexpr std::uint64_t moment_ns = 10'000'000;               // for the lock, past a deadline
constinit bool bare_child = false;                            // in a bare clone()'s child

// Under the mutex: whether a mover was refused because the helper threads had been made before it.
// They are then made last, and one that is not made is asked for again later. Otherwise they come
// first: making a thread takes longer while another one runs.
constinit bool threads_are_scarce = false;
void make_aides() noexcept {
  for (const os::Aide aide : {os::Aide::files, os::Aide::tune, os::Aide::distance})
    os::make_aide(aide);
  prepare_to_look();
}

// Locked.
Code make_threads(Error* error) noexcept {
  if (bare_child) {
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
  crew.stopping.store(false, std::memory_order_relaxed);
  if (!threads_are_scarce) make_aides();
  start_survey();
  // The threads inherit the rights and the keys.
  note_mover_rights(rights_number());
  note_mover_keys();
  for (unsigned i = 0; i < wanted && i < max_movers; ++i) {
    MoverThread& mover = crew.movers[i];
    if (mover.now() != Life::none) continue;  // has not noticed yet that the first retired
    mover.index = i;
    mover.become(Life::running);
    const int result = os::start_thread(&mover.thread, live, &mover);
    if (result < 0) {
      mover.become(Life::none);
      if (i != 0) break;
      threads_are_scarce = true;
      os::dismiss_aides();
      *error = make_error(
          Code::no_memory, -result,
          "No mover: a thread could not be made (%s); raise the limit on processes (ulimit -u).",
          describe_errno(-result));
      return Code::no_memory;
    }
  }
  if (threads_are_scarce) make_aides();
  return Code::ok;
}

// Makes the movers, if there are none.
Code make_movers(Error* error) noexcept {
  Code code = Code::ok;
  {
    // Signals are blocked meanwhile, so that a handler that forks never finds the lock held by its
    // own thread.
    const QuietLock lock(mutex);
    if (gate.closed.load(std::memory_order_relaxed)) {
      code = Code::closed;
      *error = make_error(code, 0, "haul_shutdown() was called; there are no movers after it.");
    } else if (gate.held.load(std::memory_order_relaxed)) {
      code = Code::again;
      *error = make_error(code, 0, "No mover now: the process is forking or exiting.");
    } else if (crew.movers[0].now() == Life::none) {
      crew.submitter_cpu.store(os::current_cpu(), std::memory_order_relaxed);
      code = make_threads(error);
    }
  }
  if (code == Code::not_supported || code == Code::no_memory) {
    set_mover_state(plan::MoverState::impossible);
    log(LogLevel::info, "%s", error->sentence);
  }
  return code;
}

// No thread has a ring, and the mover is awake: either it carries out what they left and retires,
// or it is stuck with that and would keep the process alive when its last thread has ended.
void watch_over_end(void*) noexcept {
  constexpr std::uint64_t pause_ns = 250'000'000;
  do {
    os::sleep_ns(pause_ns);
    if (gate.asleep.load(std::memory_order_relaxed) != mover_runs || any_ring_owned()) return;
  } while (!os::end_process_anyway());
}

// The movers have retired and are needed again: makes new ones.
void call_back() noexcept {
  Error error;
  if (make_movers(&error) == Code::ok) return;
  // None can be made: this thread carries out itself what it has published.
  if (Ring* ring = own_ring(); ring != nullptr && thread_slot.carrying == 0)
    drain(*ring, ring->next_seq());
}

}  // namespace

Code wake_mover(Error* error) noexcept {
  // If this process has a mover it is woken first; it looks for the node's service by itself.
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
      // While a service is being attached, it is not worth making a thread for this copy.
      if (look_for_service() && gate.service_bell.load(std::memory_order_relaxed) == nullptr) {
        *error =
            make_error(Code::again, 0, "No mover now: the node's service is being attached to.");
        return Code::again;
      }
      break;
    case plan::MoverState::impossible: look_for_service(); break;
  }
  return make_movers(error);
}

void ring_doorbell() noexcept {
  if (!wake_sleeping_mover()) call_back();
}

bool wake_sleeping_mover() noexcept {
  std::uint32_t word = gate.asleep.load(std::memory_order_relaxed);
  while (word == mover_sleeps || word == mover_looks) {
    if (!gate.asleep.compare_exchange_weak(word, mover_runs, std::memory_order_release)) continue;
    crew.submitter_cpu.store(os::current_cpu(), std::memory_order_relaxed);
    os::futex_wake(&gate.asleep, 1);
    return true;
  }
  return word != mover_gone;
}

void ring_was_given_up() noexcept {
  if (any_ring_owned()) return;
  std::uint32_t word = mover_sleeps;
  // Sequentially consistent, and after the store that gave the ring up: either the mover that is
  // falling asleep sees that store, or this sees that the mover sleeps.
  if (gate.asleep.compare_exchange_strong(word, mover_looks, std::memory_order_seq_cst)) {
    os::futex_wake(&gate.asleep, 1);
  } else if (word == mover_runs && !first_is_gone()) {
    os::ask_aide(os::Aide::distance, watch_over_end, nullptr);
  }
  dismiss_unneeded_aides();
}

void dismiss_unneeded_aides() noexcept {
  // A thread that has got a ring since then makes movers, and the aides, again, under this lock.
  const QuietLock lock(mutex);
  if (first_is_gone() && !any_ring_owned()) os::dismiss_aides();
}

bool first_is_gone() noexcept {
  return crew.movers[0].now() == Life::none;
}

bool retire(MoverThread& self) noexcept {
  {
    const QuietLock lock(mutex);
    if (crew.stopping.load(std::memory_order_relaxed)) return false;
    if (self.index == 0) {
      // A thread that has published since then has rung the bell, or will find that there is no
      // mover.
      std::uint32_t word = mover_sleeps;
      if (!gate.asleep.compare_exchange_strong(word, mover_gone, std::memory_order_acq_rel))
        return false;
      crew.party.fetch_add(1, std::memory_order_release);
      forget_mover_rights();
    } else if (!first_is_gone()) {
      return false;
    }
    self.become(Life::none);
    if (self.index == 0) os::dismiss_aides();
  }
  os::futex_wake(&crew.party, static_cast<int>(max_movers));
  if (!os::end_process_elsewhere()) os::detach_self();
  return true;
}

bool stop_movers(std::uint64_t deadline_ns) noexcept {
  {
    // A thread that makes movers may be waiting for a lock of the program's, whose holder may be
    // waiting for this.
    const QuietLock lock(mutex, deadline_ns);
    if (!lock) return false;
    crew.stopping.store(true, std::memory_order_release);
    crew.party.fetch_add(1, std::memory_order_release);
    if (gate.asleep.load(std::memory_order_relaxed) != mover_gone)
      gate.asleep.store(mover_runs, std::memory_order_release);
  }
  os::futex_wake(&crew.party, static_cast<int>(max_movers));
  os::futex_wake(&gate.asleep, 1);
  bool all = true;
  for (MoverThread& mover : crew.movers) {
    for (std::uint64_t now = now_ns(); mover.now() == Life::running && now < deadline_ns;
         now = now_ns()) {
      os::futex_wait(&mover.life, static_cast<std::uint32_t>(Life::running), deadline_ns - now);
    }
    const QuietLock lock(mutex, std::max(deadline_ns, now_ns() + moment_ns));
    if (!lock) return false;
    if (mover.now() == Life::over) {
      os::join_thread(mover.thread);
      mover.become(Life::none);
    }
    all = all && mover.now() == Life::none;
    drop_lease(static_cast<unsigned>(&mover - crew.movers));
  }
  if (first_is_gone()) tidy_after_first_mover();
  os::dismiss_aides();
  set_mover_state(plan::MoverState::none);
  movers_drive(false);
  return all;
}

void forget_movers() noexcept {
  mutex = PTHREAD_MUTEX_INITIALIZER;
  os::forget_aides();
  movers_drive(false);
  crew.stopping.store(false, std::memory_order_relaxed);
  forget_first_mover();
  for (MoverThread& mover : crew.movers) {
    mover.become(Life::none);
    mover.loop.begin();
  }
  forget_mover_rights();
  drop_inherited_leases();
}

void forbid_movers() noexcept {
  forget_movers();
  bare_child = true;
}

}  // namespace haul
