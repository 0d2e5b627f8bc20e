#include "base/sync/turnstile.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace haul {
namespace {

constexpr std::uint64_t long_ns = 10'000'000'000;

TEST(Turnstile, NobodyIsWithinWhileItIsClosed) {
  Turnstile turnstile;
  std::atomic<bool> done{false};
  std::atomic<int> within{0};
  std::atomic<std::uint64_t> passed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done.load()) {
        const TurnstilePass pass(&turnstile);
        within.fetch_add(1);
        passed.fetch_add(1);
        within.fetch_sub(1);
      }
    });
  }
  int seen = 0;
  for (std::uint64_t turn = 0; turn < 2000; ++turn) {
    while (passed.load() < turn) std::this_thread::yield();
    ASSERT_TRUE(turnstile.close(long_ns));
    const std::uint64_t before = passed.load();
    for (int look = 0; look < 50; ++look) seen += within.load();
    EXPECT_EQ(passed.load(), before);
    turnstile.open();
  }
  done.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, 0);
}

TEST(Turnstile, WhoeverStaysWithinHoldsNobodyUpForEver) {
  Turnstile turnstile;
  turnstile.enter();
  EXPECT_FALSE(turnstile.close(1'000'000));
  turnstile.open();
  turnstile.leave();
  EXPECT_TRUE(turnstile.close(long_ns));
  turnstile.reset();
  const TurnstilePass pass(&turnstile), none(nullptr);
}

}  // namespace
}  // namespace haul
