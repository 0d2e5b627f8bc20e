#include "base/process_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
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

TEST(ProcessLock, LetsOneThreadInAtATime) {
  ProcessLock lock;
  unsigned sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        lock.lock();
        ++sum;
        lock.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 8000u);
}

TEST(ProcessLock, IsFreeInAChildWhoeverHeldItInTheParent) {
  ProcessLock lock;
  lock.lock();
  const int status = status_of_child([&] {
    lock.lock();
    lock.unlock();
    lock.lock();
  });
  EXPECT_EQ(status, 0);
  // The child's doing is nothing to the parent: it is held here still.
  std::atomic<bool> entered{false};
  std::thread waiter([&] {
    lock.lock();
    entered = true;
    lock.unlock();
  });
  usleep(20'000);
  EXPECT_FALSE(entered);
  lock.unlock();
  waiter.join();
  EXPECT_TRUE(entered);
}

}  // namespace
}  // namespace haul
