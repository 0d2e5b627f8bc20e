// Turns and pauses of the progress thread, and what becomes of it around a fork.
#include "fabric/endpoint/waiting/progress_thread.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/thread/own_threads.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/transport/control/fork_count.hpp"

namespace haul::fabric {

namespace {

constexpr std::uint64_t until_rung = ~std::uint64_t{0};
// Between turns while the program polls, and at most while a copy or a full ring is waited for.
constexpr std::uint64_t long_pause_ns = 1'000'000;
constexpr std::uint64_t short_pause_ns = 20'000;

// How many progress threads are in a turn: a fork waits for their end, a second at most, and none
// begins one until the fork is over. Nothing is held: the fork may wait for a lock of the
// program's, under which another thread ends a domain, and with it such a thread.
constinit std::atomic<std::uint32_t> turning{0};
constinit ForkCount forks;
[[gnu::tls_model("initial-exec")]] constinit thread_local ForkCount::Own own_forks = 0;
constexpr std::uint64_t turn_patience_ns = 1'000'000'000;

void let_turns_end() noexcept {
  forks.begin(own_forks);
  for (const std::uint64_t begin = now_ns();
       turning.load(std::memory_order_seq_cst) != 0 && now_ns() - begin < turn_patience_ns;) {
    os::sleep_ns(short_pause_ns);
  }
}

void let_turns_begin() noexcept {
  forks.end(own_forks);
}

void forget_turns() noexcept {
  turning.store(0, std::memory_order_relaxed);
  forks.forget(own_forks);
}

// Registered after the control thread's handlers (by the first network), so that before a fork
// these handlers run first: a turn that changed something under the control lock within the control
// thread's fork window (fork_window.hpp) would spoil the child's copy. The order relative to
// libhaul's handlers does not matter: a turn never waits for those, and copies by itself meanwhile.
void watch_forks() noexcept {
  static std::atomic<bool> done{false};
  if (done.exchange(true, std::memory_order_relaxed)) return;
  pthread_atfork(let_turns_end, let_turns_begin, forget_turns);
}

}  // namespace

ProgressThread::~ProgressThread() {
  if (process_ == 0 || getpid() != process_) return;
  // Release: pairs with turn(), which looks after it has emptied the event.
  stop_.store(true, std::memory_order_release);
  wait_->ring();
  // Acquire: pairs with run().
  if (!gone_.load(std::memory_order_acquire)) os::join_thread(thread_);
}

int ProgressThread::start() noexcept {
  if (process_ != 0) return 0;
  watch_forks();
  int error = WaitObject::open(FI_WAIT_FD, wait_);
  if (error == 0) error = os::start_thread(&thread_, run, this);
  if (error == 0) {
    process_ = getpid();
    return 0;
  }
  wait_.reset();
  log(LogLevel::error,
      "fi_enable: the thread for automatic progress cannot start (%s); raise ulimit -n or -u, or "
      "ask for FI_PROGRESS_MANUAL.",
      describe_errno(-error));
  return error;
}

WaitObject* ProgressThread::wait() noexcept {
  return process_ != 0 && getpid() == process_ ? wait_.get() : nullptr;
}

void ProgressThread::wake() noexcept {
  asleep_ = false;
  wait_->ring();
}

void* ProgressThread::run(void* self) noexcept {
  os::name_thread("haul-progress");
  auto& own = *static_cast<ProgressThread*>(self);
  if (!own.work()) {
    // No thread of the program is left to end the domain; an exit handler may.
    own.gone_.store(true, std::memory_order_release);
    if (!os::end_process_elsewhere()) os::detach_self();
  }
  return nullptr;
}

// False: it is to end by itself.
bool ProgressThread::work() noexcept {
  for (;;) {
    if (!enter()) return true;
    const bool go_on = turn();
    const std::uint64_t pause_ns = pause_ns_;
    leave();
    if (!go_on) return true;
    if (is_alone()) return false;
    if (pause_ns == until_rung) {
      wait_->sleep(-1);
    } else if (pause_ns != 0) {
      os::sleep_ns(pause_ns);
    } else {
      os::yield();  // lets a thread that waits for the lock have it
    }
  }
}

// Asked once a second at most.
bool ProgressThread::is_alone() noexcept {
  constexpr std::uint64_t look_ns = 1'000'000'000;
  const std::uint64_t now = now_ns();
  if (now - looked_ns_ < look_ns) return false;
  looked_ns_ = now;
  return os::only_own_threads();
}

// It does not block on the data lock, because a fork waits for this thread's turn to end, and a
// signal handler may fork in the middle of a call that holds that lock. A thread that holds the
// lock makes progress itself, or is done soon. False: the thread is to end.
bool ProgressThread::enter() noexcept {
  while (!stop_.load(std::memory_order_acquire)) {
    // Sequentially consistent, as is `forks`: either a fork sees this turn, or is seen.
    turning.fetch_add(1, std::memory_order_seq_cst);
    if (forks.all() == 0 && domain_.lock.try_lock()) return true;
    turning.fetch_sub(1, std::memory_order_seq_cst);
    os::sleep_ns(short_pause_ns);
  }
  return false;
}

void ProgressThread::leave() noexcept {
  domain_.lock.unlock();
  turning.fetch_sub(1, std::memory_order_seq_cst);
}

// False: the thread is to end.
bool ProgressThread::turn() noexcept {
  ProgressGroup& endpoints = domain_.endpoints;
  if (armed_) endpoints.disarm();
  armed_ = asleep_ = false;
  wait_->quiet();
  if (stop_.load(std::memory_order_acquire)) return false;

  const bool program_polls = domain_.turns != seen_;
  bool active = endpoints.progress();
  if (!program_polls && !active && endpoints.idle()) {
    endpoints.arm();
    armed_ = true;
    active = endpoints.progress();
  }
  seen_ = domain_.turns;
  if (program_polls) {
    pause_ns_ = long_pause_ns;
  } else if (active) {
    pause_ns_ = 0;
  } else if (armed_ && endpoints.idle()) {
    pause_ns_ = until_rung;
    asleep_ = true;
  } else {
    // From until_rung, too, which is the largest.
    const std::uint64_t last_ns = pause_ns_ == until_rung ? 0 : pause_ns_;
    pause_ns_ = std::clamp(2 * last_ns, short_pause_ns, long_pause_ns);
  }
  return true;
}

}  // namespace haul::fabric
