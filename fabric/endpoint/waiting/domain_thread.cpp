// The life of a thread that makes progress, and what becomes of it around a fork.
#include "fabric/endpoint/waiting/domain_thread.hpp"

#include <unistd.h>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/thread/own_threads.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/transport/control/fork_count.hpp"

namespace haul::fabric {

namespace {

// How many such threads are in a turn: a fork waits for their end, a second at most, and none
// begins one until the fork is over. Nothing is held: the fork may wait for a lock of the
// program's, under which another thread ends a domain, and with it such a thread.
constinit std::atomic<std::uint32_t> turning{0};
constinit ForkCount forks;
[[gnu::tls_model("initial-exec")]] constinit thread_local ForkCount::Own own_forks = 0;
constexpr std::uint64_t turn_patience_ns = 1'000'000'000;
constexpr std::uint64_t look_ns = 20'000;

void let_turns_end() noexcept {
  forks.begin(own_forks);
  for (const std::uint64_t begin = now_ns();
       turning.load(std::memory_order_seq_cst) != 0 && now_ns() - begin < turn_patience_ns;) {
    os::sleep_ns(look_ns);
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

void DomainThread::stop() noexcept {
  if (process_ == 0 || getpid() != process_) return;
  // Release: pairs with stopping(), which is asked after the event was emptied.
  stop_.store(true, std::memory_order_release);
  wait_->ring();
  // Acquire: pairs with run().
  if (!gone_.load(std::memory_order_acquire)) os::join_thread(thread_);
}

int DomainThread::start() noexcept {
  if (process_ != 0) return 0;
  watch_forks();
  int error = WaitObject::open(FI_WAIT_FD, wait_);
  // Its own process, before the thread asks.
  process_ = getpid();
  if (error == 0) error = os::start_thread(&thread_, run, this);
  if (error == 0) return 0;
  process_ = 0;
  wait_.reset();
  return error;
}

WaitObject* DomainThread::wait() noexcept {
  return process_ != 0 && getpid() == process_ ? wait_.get() : nullptr;
}

bool DomainThread::fork_waits() noexcept {
  return forks.all() != 0;
}

void* DomainThread::run(void* self) noexcept {
  auto& own = *static_cast<DomainThread*>(self);
  os::name_thread(own.name_);
  if (!own.work()) {
    // No thread of the program is left to end the domain; an exit handler may.
    own.gone_.store(true, std::memory_order_release);
    if (!os::end_process_elsewhere()) os::detach_self();
  }
  return nullptr;
}

// False: it is to end by itself.
bool DomainThread::work() noexcept {
  for (bool refused = false;;) {
    const bool wanted = rest(refused);
    if (stopping()) return true;
    if (is_alone()) return false;
    refused = wanted && !enter();
    if (!wanted || refused) continue;
    const bool go_on = turn();
    leave();
    if (!go_on) return true;
  }
}

// Asked once a second at most.
bool DomainThread::is_alone() noexcept {
  constexpr std::uint64_t again_ns = 1'000'000'000;
  const std::uint64_t now = now_ns();
  if (now - looked_ns_ < again_ns) return false;
  looked_ns_ = now;
  return os::only_own_threads();
}

// It does not block on the data lock, because a fork waits for this thread's turn to end, and a
// signal handler may fork in the middle of a call that holds that lock. A thread that holds the
// lock makes progress itself, or is done soon.
bool DomainThread::enter() noexcept {
  // Sequentially consistent, as is `forks`: either a fork sees this turn, or is seen.
  turning.fetch_add(1, std::memory_order_seq_cst);
  if (!fork_waits() && domain_.lock.enter_as_guest(process_)) return true;
  turning.fetch_sub(1, std::memory_order_seq_cst);
  return false;
}

void DomainThread::leave() noexcept {
  domain_.lock.leave_as_guest();
  turning.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace haul::fabric
