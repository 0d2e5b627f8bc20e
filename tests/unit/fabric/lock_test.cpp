// The endpoint room's lock: one at a time, and whoever sleeps is woken.
#include "fabric/endpoint/lock.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace haul::fabric
