// Real-time threads and haul's: what haul makes is ordinary whoever makes it, and whoever waits for
// it goes to sleep, so that it can run on the waiter's own CPU.
#include <dirent.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

bool become_fifo() {
  sched_param priority{};
  priority.sched_priority = 10;
  return sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

bool may_be_fifo() {
  return run_child([] { return become_fifo() ? 0 : 1; }) == 0;
}

// Of the process's threads but the calling one.
std::vector<int> other_threads() {
  std::vector<int> threads;
  DIR* tasks = opendir("/proc/self/task");
  CHILD_CHECK(tasks != nullptr);
  while (const dirent* task = readdir(tasks)) {
    const int thread = std::atoi(task->d_name);
    if (thread != 0 && thread != gettid()) threads.push_back(thread);
  }
  closedir(tasks);
  return threads;
}

TEST(Scheduling, HaulsThreadsAreOrdinaryWhateverTheirMakerIs) {
  if (thread_sanitizer)
    GTEST_SKIP() << "ThreadSanitizer makes a thread of its own, with its maker's policy";
  if (!may_be_fifo()) GTEST_SKIP() << "this user may not make real-time threads";
  EXPECT_EQ(run_child([] {
              always_mover();
              unsetenv("HAUL_TUNE_BACKGROUND");  // the one who measures too
              CHILD_CHECK(become_fifo());
              copy_works(4 * mib, 1);
              unsigned seen = 0;
              for (int turn = 0; turn < 100; ++turn) {
                for (const int thread : other_threads()) {
                  const int policy = sched_getscheduler(thread);
                  if (policy < 0) continue;  // it has just ended
                  ++seen;
                  CHILD_EQUAL(policy, SCHED_OTHER);
                }
                if (turn % 10 == 0) copy_works(mib, 2);
                sleep_ms(2);
              }
              CHILD_CHECK(seen != 0);
              return 0;
            }),
            0);
}

// One chunk that the waiter cannot help with, on the waiter's own CPU.
int sleeps_while_it_waits(bool fifo, bool range) {
  constexpr std::size_t bytes = 96 * mib;
  always_mover();
  const Buffer buffer(bytes + 4096);
  buffer.clear();
  CHILD_CHECK(wake_and_see());
  haul_request request = haul_request_copy(buffer.data() + 4096, buffer.data(), bytes);
  request.flags = HAUL_DEDICATED;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  std::size_t good = 0;
  int over = 0;
  while (good == 0 && over == 0) over = haul_progress(ticket, &good);
  if (const int cpu = state_now().mover_cpu; cpu >= 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (fifo) CHILD_CHECK(become_fifo());
    CHILD_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
  }
  rusage before{}, after{};
  getrusage(RUSAGE_THREAD, &before);
  over = haul_test(ticket);
  CHILD_EQUAL(range ? haul_wait_range(ticket, 0, bytes) : haul_wait(ticket), 0);
  getrusage(RUSAGE_THREAD, &after);
  // Where the mover was faster than the waiter, there is nothing to see.
  CHILD_CHECK(over == 1 || after.ru_nvcsw > before.ru_nvcsw);
  return 0;
}

TEST(Scheduling, WhoWaitsSleeps) {
  EXPECT_EQ(run_child([] { return sleeps_while_it_waits(false, false); }), 0);
}

TEST(Scheduling, WhoWaitsForARangeSleeps) {
  EXPECT_EQ(run_child([] { return sleeps_while_it_waits(false, true); }), 0);
}

TEST(Scheduling, ARealTimeThreadThatWaitsSleeps) {
  if (!may_be_fifo()) GTEST_SKIP() << "this user may not make real-time threads";
  EXPECT_EQ(run_child([] { return sleeps_while_it_waits(true, false); }), 0);
}

TEST(Scheduling, ARealTimeThreadThatWaitsForARangeSleeps) {
  if (!may_be_fifo()) GTEST_SKIP() << "this user may not make real-time threads";
  EXPECT_EQ(run_child([] { return sleeps_while_it_waits(true, true); }), 0);
}

}  // namespace
