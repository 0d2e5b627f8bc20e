// How movers begin: from a thread that is pinned to one CPU, and not at all once haul_shutdown()
// was called, be it the first call of all.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>

#include "support.hpp"

namespace {

using namespace e2e;

TEST(Start, AfterAShutdownThatCameFirstThereIsNoMover) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              setenv("HAUL_MOVER_LEASE", "off", 1);
              CHILD_EQUAL(haul_shutdown(), 0);
              CHILD_EQUAL(haul_wake(), HAUL_ECLOSED);
              CHILD_CHECK(std::strstr(haul_last_error(), "haul_shutdown") != nullptr);
              CHILD_EQUAL(haul_tune(nullptr, nullptr), HAUL_ECLOSED);
              CHILD_EQUAL(haul_wake(), HAUL_ECLOSED);
              CHILD_EQUAL(state_now().mover_state, 0);
              const Buffer src(mib), dst(mib);
              src.fill(1);
              dst.clear();
              CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), HAUL_ECLOSED);
              CHILD_EQUAL(dst[0], 0);
              CHILD_EQUAL(haul_shutdown(), 0);
              CHILD_EQUAL(haul_wake(), HAUL_ECLOSED);
              return 0;
            }),
            0);
}

struct Pinned {
  int cpu = -1;
  std::atomic<bool> stop{false};
  std::atomic<unsigned> copies{0};
};

int first_allowed_cpu() {
  cpu_set_t mask;
  CHILD_EQUAL(sched_getaffinity(0, sizeof mask, &mask), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) return cpu;
  }
  return -1;
}

void* copy_pinned(void* argument) {
  auto& self = *static_cast<Pinned*>(argument);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(self.cpu, &one);
  CHILD_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
  const Buffer src(32 * mib), dst(32 * mib);
  std::memset(src.data(), 1, src.size());
  while (!self.stop) {
    dst[src.size() - 1] = 0;
    CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), src.size())), 0);
    CHILD_EQUAL(dst[src.size() - 1], 1);
    ++self.copies;
  }
  return nullptr;
}

// By the planner's own choice, or because everything is the mover's.
int pinned_child(bool planned) {
  quiet_environment();
  setenv("HAUL_MOVER_LEASE", "off", 1);
  if (!planned) setenv("HAUL_PLAN_MOVER", "thread", 1);
  Pinned pinned;
  pinned.cpu = first_allowed_cpu();
  pthread_t thread;
  CHILD_EQUAL(pthread_create(&thread, nullptr, copy_pinned, &pinned), 0);
  bool awake = false;
  int mover_cpu = -1;
  for (int turn = 0; turn < 20'000 && !awake; ++turn) {
    const haul_state state = state_now();
    CHILD_CHECK(state.mover_state != 4);
    awake = state.mover_state == 1;
    if (awake) mover_cpu = state.mover_cpu;
    sleep_ms(1);
  }
  pinned.stop = true;
  pthread_join(thread, nullptr);
  CHILD_CHECK(awake);
  CHILD_CHECK(pinned.copies > 0);
  // The mover has the whole process's CPUs, not the one of the thread that made it.
  CHILD_CHECK(mover_cpu != pinned.cpu);
  copy_works(16 * mib, 3);
  CHILD_CHECK(wake_and_see());
  return 0;
}

TEST(Start, APinnedThreadStartsTheMover) {
  if (cpus_allowed() < 2) GTEST_SKIP() << "one CPU only: there is no mover to start";
  EXPECT_EQ(run_child([] { return pinned_child(true); }), 0) << "planned";
  EXPECT_EQ(run_child([] { return pinned_child(false); }), 0) << "all to the mover";
}

// But a process that as a whole may use one CPU has none, and says so.
TEST(Start, APinnedProcessHasNoMover) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              unsetenv("HAUL_MOVER_CPU");
              cpu_set_t one;
              CPU_ZERO(&one);
              CPU_SET(first_allowed_cpu(), &one);
              CHILD_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
              CHILD_EQUAL(haul_wake(), HAUL_ENOTSUP);
              CHILD_EQUAL(state_now().mover_state, 4);
              copy_works(16 * mib, 1);
              return 0;
            }),
            0);
}

}  // namespace
