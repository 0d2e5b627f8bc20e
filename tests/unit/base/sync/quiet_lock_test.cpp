// A lock that no signal handler finds held by its own thread, and that holds no handler up.
#include "base/sync/quiet_lock.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"

namespace haul {
namespace {

constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
constinit std::atomic<int> handled{0};

void count(int) {
  ++handled;
}

bool handled_within(std::uint64_t ns) {
  for (const std::uint64_t begun = now_ns(); handled == 0;) {
    if (now_ns() - begun > ns) return false;
    os::sleep_ns(1'000'000);
  }
  return true;
}

class QuietLocks : public testing::Test {
 protected:
  void SetUp() override {
    handled = 0;
    struct sigaction action {};
    action.sa_handler = count;
    ASSERT_EQ(sigaction(SIGUSR1, &action, &before_), 0);
  }
  void TearDown() override { sigaction(SIGUSR1, &before_, nullptr); }
  struct sigaction before_ {};
};

TEST_F(QuietLocks, AHandlerRunsWhenTheLockIsGivenBack) {
  {
    const QuietLock lock(mutex);
    EXPECT_NE(pthread_mutex_trylock(&mutex), 0);
    raise(SIGUSR1);
    EXPECT_EQ(handled, 0);
  }
  EXPECT_EQ(handled, 1);
}

TEST_F(QuietLocks, AHandlerRunsWhileAnotherThreadHasTheLock) {
  std::atomic<bool> about_to_wait{false}, taken{false};
  ASSERT_EQ(pthread_mutex_lock(&mutex), 0);
  std::thread waiter([&] {
    about_to_wait = true;
    const QuietLock lock(mutex);
    taken = true;
  });
  while (!about_to_wait) std::this_thread::yield();
  os::sleep_ns(20'000'000);  // it waits by now, mostly; the test holds either way
  EXPECT_EQ(pthread_kill(waiter.native_handle(), SIGUSR1), 0);
  EXPECT_TRUE(handled_within(20'000'000'000));
  EXPECT_FALSE(taken);
  pthread_mutex_unlock(&mutex);
  waiter.join();
  EXPECT_TRUE(taken);
}

TEST_F(QuietLocks, OneThreadAtATimeHasIt) {
  constexpr unsigned threads = 4, turns = 20'000;
  unsigned turned = 0;
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&] {
      for (unsigned turn = 0; turn < turns; ++turn) {
        const QuietLock lock(mutex);
        ++turned;
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(turned, threads * turns);
}

}  // namespace
}  // namespace haul
