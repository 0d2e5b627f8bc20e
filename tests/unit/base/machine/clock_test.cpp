#include "base/machine/clock.hpp"

#include <gtest/gtest.h>
#include <time.h>

#include <cerrno>
#include <thread>
#include <vector>

namespace haul {
namespace {

TEST(Clock, NowIsMonotonicAndTheKernelsOwn) {
  timespec before;
  timespec after;
  errno = EXDEV;
  clock_gettime(CLOCK_MONOTONIC, &before);
  const std::uint64_t first = now_ns();
  const std::uint64_t second = now_ns();
  clock_gettime(CLOCK_MONOTONIC, &after);
  const auto ns = [](const timespec& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
  };
  EXPECT_LE(ns(before), first);
  EXPECT_LE(first, second);
  EXPECT_LE(second, ns(after));
  EXPECT_EQ(errno, EXDEV);
}

TEST(Clock, ThreadTimeCountsThisThreadsWorkOnly) {
  const std::uint64_t start_ns = thread_cpu_ns();
  while (thread_cpu_ns() - start_ns < 2'000'000) {
  }
  // A thread that has just begun has used less than its parent, which has worked 2 ms already.
  std::uint64_t others_ns = 0;
  std::thread([&] { others_ns = thread_cpu_ns(); }).join();
  EXPECT_LT(others_ns, thread_cpu_ns());
}

TEST(Clock, TicksGoForward) {
  std::uint64_t last = fenced_ticks();
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t now = fenced_ticks();
    ASSERT_GT(now, last);
    last = now;
  }
  EXPECT_GT(ticks(), 0u);
}

TEST(Clock, AllThreadsGetOneTickRate) {
  std::vector<double> rates(4);
  std::vector<std::thread> threads;
  for (double& rate : rates) threads.emplace_back([&rate] { rate = ticks_per_ns(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(rates[0], 0.0);
  for (const double rate : rates) EXPECT_EQ(rate, rates[0]);
  EXPECT_EQ(ticks_per_ns(), rates[0]);
}

}  // namespace
}  // namespace haul
