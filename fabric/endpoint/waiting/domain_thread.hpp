// A thread that makes progress on a domain's endpoints beside the program: what becomes of it from
// its start to its end, and around a fork. When it takes its turns is its kind's business:
// progress_thread.hpp, overlap_thread.hpp.
//
// It takes the domain's lock as a guest (lock.hpp) for each turn, and holds none while it rests. It
// ends when only haul's threads are left in the process, so that the process can end.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "fabric/endpoint/waiting/wait_object.hpp"

namespace haul::fabric {

class Domain;

class DomainThread {
 public:
  // ---- under the data lock ----
  // Starts the thread unless it was started. 0 or -FI_E*. Comes after the first network was opened:
  // a fork then stops this thread's turns before it waits for the control lock. A thread of the
  // program's calls it.
  int start() noexcept;
  // What wakes it; nullptr while it was not started, and in a child of fork.
  WaitObject* wait() noexcept;

 protected:
  // The name must have at most 15 bytes and begin with "haul-".
  DomainThread(Domain& domain, const char* name) noexcept : domain_(domain), name_(name) {}
  ~DomainThread() = default;
  // Ends the thread, before what its kind has is destroyed: the domain has no endpoint left. A
  // child of fork has none to end.
  void stop() noexcept;

  // ---- the thread ----
  // Without the lock: returns when it is time for a turn (true), or now and then, and when it is to
  // stop. `refused`: the last time, the program was inside, or a fork under way, and there was no
  // turn.
  virtual bool rest(bool refused) noexcept = 0;
  // Under the lock. False: the thread is to end.
  virtual bool turn() noexcept = 0;
  bool stopping() const noexcept { return stop_.load(std::memory_order_acquire); }
  // A fork waits for the end of this turn.
  static bool fork_waits() noexcept;

  Domain& domain_;
  std::unique_ptr<WaitObject> wait_;
  pid_t process_ = 0;  // that has the thread; 0: it was not started

 private:
  static void* run(void* self) noexcept;
  bool work() noexcept;
  bool enter() noexcept;
  void leave() noexcept;
  bool is_alone() noexcept;

  const char* const name_;
  pthread_t thread_{};
  std::atomic<bool> stop_{false};
  std::atomic<bool> gone_{false};  // it has ended by itself, and touches this no more
  std::uint64_t looked_ns_ = 0;    // at the process's threads; the thread's own
};

}  // namespace haul::fabric
