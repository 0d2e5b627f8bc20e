#include "base/sync/process_lock.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace haul {
namespace {

// Ends the process by SIGALRM if `body` hangs.
template <class Body>
int status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    body();
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

class Held {
 public:
  explicit Held(ProcessLock& lock) : lock_(lock) { lock_.lock(&saved_); }
  ~Held() { lock_.unlock(saved_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  ProcessLock& lock_;
  os::SignalMask saved_;
};

TEST(ProcessLock, LetsOneThreadInAtATime) {
  ProcessLock lock;
  unsigned sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const Held held(lock);
        ++sum;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 8000u);
}

TEST(ProcessLock, IsFreeInAChildWhoeverHeldItInTheParent) {
  ProcessLock lock;
  std::optional<Held> own(std::in_place, lock);
  const int status = status_of_child([&] {
    { const Held first(lock); }
    const Held second(lock);
  });
  EXPECT_EQ(status, 0);
  // The child's doing is nothing to the parent: it is held here still.
  std::atomic<bool> entered{false};
  std::thread waiter([&] {
    const Held held(lock);
    entered = true;
  });
  usleep(20'000);
  EXPECT_FALSE(entered);
  own.reset();
  waiter.join();
  EXPECT_TRUE(entered);
}

// Signals are blocked while a thread has it, and open while it waits.
TEST(ProcessLock, IsWaitedForWithSignalsOpen) {
  static std::atomic<bool> heard{false};
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { heard = true; };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  ProcessLock lock;
  std::atomic<bool> taken{false};
  std::thread waiter([&] {
    while (!taken) usleep(1000);
    const Held held(lock);
  });
  std::optional<Held> own(std::in_place, lock);
  taken = true;
  for (int turn = 0; turn < 20'000 && !heard; ++turn) {
    pthread_kill(waiter.native_handle(), SIGUSR1);
    usleep(1000);
  }
  EXPECT_TRUE(heard);
  heard = false;
  raise(SIGUSR1);
  EXPECT_FALSE(heard);
  own.reset();
  EXPECT_TRUE(heard);
  waiter.join();
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace haul
