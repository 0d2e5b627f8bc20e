// The endpoint room's lock: one at a time, and whoever sleeps is woken.
#include "fabric/endpoint/lock.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace haul::fabric {
namespace {

TEST(WordLock, lets_one_in_at_a_time) {
  constexpr int threads = 8, rounds = 20000;
  WordLock lock;
  long counted = 0;  // not atomic: lost increments show
  std::vector<std::thread> crowd;
  for (int i = 0; i < threads; ++i) {
    crowd.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        Guard guard(lock);
        // Long enough that others go to sleep.
        for (int turn = 0; turn < 20; ++turn) {
          counted = counted + 1;
          asm volatile("" ::: "memory");
        }
      }
    });
  }
  for (std::thread& one : crowd) one.join();
  EXPECT_EQ(counted, long{threads} * rounds * 20);
}

// The program's side and a guest beside it, which stays until it is awaited. On a busy machine the
// guest may not run for a while, so the program goes on until it has been inside.
void share_with_guest(DataLock& lock) {
  constexpr long least_rounds = 300'000, most_rounds = 1'000'000'000;
  std::atomic<bool> over{false}, came{false};
  long counted = 0, by_guest = 0;  // not atomic: lost increments show
  std::thread guest([&] {
    while (!over.load(std::memory_order_relaxed)) {
      if (!lock.enter_as_guest(getpid())) continue;
      came.store(true, std::memory_order_relaxed);
      for (int turn = 0; turn < 1000 && !lock.is_awaited(); ++turn) {
        counted = counted + 1;
        by_guest = by_guest + 1;
        asm volatile("" ::: "memory");
      }
      lock.leave_as_guest();
    }
  });
  std::uint32_t calls = lock.calls();
  long rounds = 0;
  for (; rounds < least_rounds || (!came.load(std::memory_order_relaxed) && rounds < most_rounds);
       ++rounds) {
    {
      Guard inside(lock);
      counted = counted + 1;
      asm volatile("" ::: "memory");
    }
    const std::uint32_t now = lock.calls();
    ASSERT_NE(now, calls) << "the guest would not know that the program calls";
    calls = now;
    // Lets the guest in now and then.
    if (rounds % 64 == 0)
      for (int i = 0; i < 200; ++i) asm volatile("" ::: "memory");
  }
  over = true;
  guest.join();
  EXPECT_EQ(counted, rounds + by_guest);
  EXPECT_GT(by_guest, 0);
}

TEST(DataLock, a_program_that_takes_turns_lets_a_guest_in) {
  DataLock lock(DataLock::Kind::biased);
  share_with_guest(lock);
}

TEST(DataLock, a_program_of_many_threads_lets_a_guest_in) {
  DataLock lock(DataLock::Kind::word);
  share_with_guest(lock);
}

// The program's thread sleeps through a guest's long turn, and is woken.
TEST(DataLock, who_waits_long_for_a_guest_is_woken) {
  DataLock lock(DataLock::Kind::biased);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(lock.enter_as_guest(getpid()));
    std::atomic<bool> inside{false};
    std::thread program([&] {
      Guard guard(lock);
      inside = true;
    });
    while (!lock.is_awaited()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_FALSE(inside);
    lock.leave_as_guest();
    program.join();
    EXPECT_TRUE(inside);
  }
}

}  // namespace
}  // namespace haul::fabric
