// A program's own fork handlers take a lock under which other threads of it call haul: before
// haul's handlers or after them, as malloc survives them.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <thread>

#include "e2e/load.hpp"
#include "e2e/support.hpp"

namespace {

using namespace e2e;

pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;
void lock_program() {
  pthread_mutex_lock(&program_lock);
}
void unlock_program() {
  pthread_mutex_unlock(&program_lock);
}

enum class Order : int { program_first, haul_first };

void allocates() {
  CHILD_EQUAL(haul_free(haul_alloc(4 * kib)), 0);
}
void wakes() {
  haul_wake();
}
void copies() {
  static thread_local const Buffer src(256 * kib), dst(256 * kib);
  CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), src.size())), 0);
}
void fails() {
  static thread_local const Buffer src(4 * kib);
  static void* const hidden = mmap(nullptr, 4 * kib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  haul_request request = haul_request_copy(hidden, src.data(), src.size());
  request.flags = HAUL_DEDICATED | HAUL_CHECKED;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), HAUL_EFAULT);
}
void comes_and_goes() {
  std::thread([] { copies(); }).join();
}

// Forks for half a second while a thread calls `body` all the time with the program's lock held.
int survives(Order order, void (*body)()) {
  always_mover();
  if (order == Order::program_first) pthread_atfork(lock_program, unlock_program, unlock_program);
  copy_works(mib, 1);
  haul_free(haul_alloc(4 * kib));
  if (order == Order::haul_first) pthread_atfork(lock_program, unlock_program, unlock_program);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      lock_program();
      body();
      unlock_program();
    }
  });
  timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    const pid_t child = fork();
    if (child == 0) {
      haul_free(haul_alloc(4 * kib));
      copy_works(16 * kib, 2);
      _exit(0);
    }
    CHILD_EQUAL(end_of(child, 20), 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1'000'000 < 500);
  stop = true;
  other.join();
  return 0;
}

class ForkHandlers : public testing::TestWithParam<Order> {};

TEST_P(ForkHandlers, WaitForAThreadThatAllocates) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] { return survives(GetParam(), allocates); }), 0);
}
TEST_P(ForkHandlers, WaitForAThreadThatWakesTheMover) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] { return survives(GetParam(), wakes); }), 0);
}
TEST_P(ForkHandlers, WaitForAThreadThatCopies) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] { return survives(GetParam(), copies); }), 0);
}
TEST_P(ForkHandlers, WaitForAThreadWhoseRequestsFail) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] { return survives(GetParam(), fails); }), 0);
}
TEST_P(ForkHandlers, WaitForAThreadThatMakesThreads) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] { return survives(GetParam(), comes_and_goes); }), 0);
}

INSTANTIATE_TEST_SUITE_P(Orders, ForkHandlers,
                         testing::Values(Order::program_first, Order::haul_first),
                         [](const testing::TestParamInfo<Order>& order) {
                           return order.param == Order::program_first ? "ProgramsFirst"
                                                                      : "HaulsFirst";
                         });

// A handler of the program's that runs in the child before haul's copies.
TEST(ForkHandlersInTheChild, MayCopy) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              pthread_atfork(nullptr, nullptr, [] { copy_works(mib, 5); });
              copy_works(mib, 1);
              CHILD_EQUAL(run_child([] {
                            copy_works(mib, 6);
                            CHILD_CHECK(wake_and_see());
                            return 0;
                          }),
                          0);
              return 0;
            }),
            0);
}

// The first copy of a process, and a fork beside it.
TEST(FirstCopy, BesideAFork) {
  SKIP_UNDER_SANITIZERS();
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(run_child([round] {
                always_mover();
                std::atomic<bool> go{false};
                std::thread first([&] {
                  while (!go) {
                  }
                  copy_works(64 * kib, 1);
                });
                go = true;
                for (int turn = 0; turn < round * 20; ++turn) asm volatile("");
                CHILD_EQUAL(run_child(
                                [] {
                                  copy_works(mib, 2);
                                  haul_wake();
                                  copy_works(mib, 3);
                                  return 0;
                                },
                                20),
                            0);
                first.join();
                return 0;
              }),
              0);
  }
}

}  // namespace
