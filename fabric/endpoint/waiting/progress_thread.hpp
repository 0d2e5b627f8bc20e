// Automatic progress (FI_PROGRESS_AUTO): one thread a domain makes progress while the program does
// not, so that peers reach the memory of a process that computes. While the program polls, the
// thread looks in once a millisecond, and no peer rings; otherwise it sleeps on the doorbells. It
// takes the domain's lock for each turn, and holds none while it sleeps. It ends when only haul's
// threads are left in the process, so that the process can end.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "fabric/endpoint/waiting/wait_object.hpp"

namespace haul::fabric {

class Domain;

class ProgressThread {
 public:
  // Starts nothing. The domain must outlive it.
  explicit ProgressThread(Domain& domain) noexcept : domain_(domain) {}
  // Ends the thread: the domain has no endpoint left. A child of fork has none to end.
  ~ProgressThread();

  // ---- under the data lock ----
  // Starts the thread unless it was started. 0 or -FI_E*. Comes after the first network was opened:
  // a fork then stops this thread's turns before it waits for the control lock.
  int start() noexcept;
  // What wakes it; nullptr while it was not started, and in a child of fork.
  WaitObject* wait() noexcept;
  // There is something to do that no doorbell tells of.
  void nudge() noexcept {
    if (asleep_) wake();
  }

 private:
  static void* run(void* self) noexcept;
  bool work() noexcept;
  bool enter() noexcept;
  void leave() noexcept;
  bool turn() noexcept;
  void wake() noexcept;
  bool is_alone() noexcept;

  Domain& domain_;
  std::unique_ptr<WaitObject> wait_;
  pthread_t thread_{};
  pid_t process_ = 0;  // that has the thread; 0: it was not started
  std::atomic<bool> stop_{false};
  std::atomic<bool> gone_{false};  // it has ended by itself, and touches this no more
  std::uint64_t looked_ns_ = 0;    // at the process's threads; the thread's own
  // These under the data lock:
  bool armed_ = false;
  bool asleep_ = false;         // until a doorbell or wake()
  std::uint64_t seen_ = 0;      // of the domain's turns, all of which were the thread's since
  std::uint64_t pause_ns_ = 0;  // before the next turn; until_rung: a doorbell ends it
};

}  // namespace haul::fabric
