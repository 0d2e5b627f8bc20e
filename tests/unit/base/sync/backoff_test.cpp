// Whoever waits long sleeps.
#include "base/sync/backoff.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

namespace haul {
namespace {

long sleeps_in(Backoff backoff, unsigned pauses) {
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  for (unsigned i = 0; i < pauses; ++i) backoff.pause();
  getrusage(RUSAGE_THREAD, &after);
  return after.ru_nvcsw - before.ru_nvcsw;
}

TEST(Backoff, SpinsThenYieldsThenSleeps) {
  EXPECT_EQ(sleeps_in(Backoff(50, 0), 50), 0);
  EXPECT_GE(sleeps_in(Backoff(50, 20), 80), 10);
}

TEST(Backoff, ARealTimeThreadDoesNotYield) {
  sched_param priority{};
  priority.sched_priority = 1;
  if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0)
    GTEST_SKIP() << "this user may not make real-time threads";
  const long slept = sleeps_in(Backoff(50, 1'000'000), 60);
  priority.sched_priority = 0;
  ASSERT_EQ(sched_setscheduler(0, SCHED_OTHER, &priority), 0);
  EXPECT_GE(slept, 10);
}

}  // namespace
}  // namespace haul
