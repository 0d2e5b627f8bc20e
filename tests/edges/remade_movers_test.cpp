// Movers that have retired are made anew by the next copy. Making a thread calls malloc, which may
// be the program's and wait for a lock of the program's: a fork that holds that lock in its own
// handlers, as a malloc's do, waits for nobody who waits for it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <thread>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;
thread_local bool makes_movers = false;
std::atomic<bool> is_making{false};

void lock_program() {
  pthread_mutex_lock(&program_lock);
  for (int turn = 0; turn < 5000 && !is_making; ++turn) sleep_ms(1);
}
void unlock_program() {
  pthread_mutex_unlock(&program_lock);
}

}  // namespace

// libhaul.so's calls come here.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*body)(void*), void* argument) noexcept {
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (makes_movers) {
    is_making = true;
    pthread_mutex_lock(&program_lock);
    pthread_mutex_unlock(&program_lock);
  }
  return real(thread, attributes, body, argument);
}

namespace {

int fork_while_they_are_made() {
  always_mover();
  std::thread([] { copy_works(4 * mib, 1); }).join();
  // It is the only thread that had a ring: 100 ms later the mover ends.
  sleep_ms(1000);
  // Registered after haul's, so it runs before haul's, which then runs with the lock held.
  pthread_atfork(lock_program, unlock_program, unlock_program);
  std::thread other([] {
    makes_movers = true;
    copy_works(4 * mib, 2);
  });
  const pid_t child = start_child([] {
    copy_works(mib, 3);
    return 0;
  });
  CHILD_EQUAL(end_of(child, 20), 0);
  CHILD_CHECK(is_making);
  other.join();
  copy_works(mib, 4);
  return 0;
}

// A thread that exits with the lock in its hand, which the other never gets.
int exit_while_they_are_made() {
  setenv("HAUL_MOVER_PATIENCE_MS", "500", 1);
  always_mover();
  std::thread([] { copy_works(4 * mib, 1); }).join();
  sleep_ms(1000);
  std::thread other([] {
    makes_movers = true;
    copy_works(4 * mib, 2);
  });
  lock_program();
  CHILD_CHECK(is_making);
  std::exit(0);
}

TEST(RemadeMovers, AnExitDoesNotWaitForWhoMakesThem) {
  if (sanitizer) GTEST_SKIP() << "a sanitizer's runtime has a pthread_create() of its own";
  EXPECT_EQ(run_child(exit_while_they_are_made, 20), 0);
}

TEST(RemadeMovers, AForkDoesNotWaitForWhoMakesThem) {
  if (sanitizer) GTEST_SKIP() << "a sanitizer's runtime has a pthread_create() of its own";
  EXPECT_EQ(run_child(fork_while_they_are_made, 60), 0);
}

}  // namespace
