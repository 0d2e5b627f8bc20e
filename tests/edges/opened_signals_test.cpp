// A signal that comes while haul has signals blocked is heard at the instant in which it opens them
// again. A handler that forks there finds everything whole, in the child as well: each such instant
// of an operation is tried, one after the other.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

// Of the thread that is tried: at which of its instants the signal comes; 0: at none.
thread_local unsigned wanted = 0, passed = 0;
pid_t forked = -1;

}  // namespace

// libhaul.so's calls come here.
extern "C" int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  static const auto real = reinterpret_cast<int (*)(int, const sigset_t*, sigset_t*)>(
      dlsym(RTLD_NEXT, "pthread_sigmask"));
  if (how == SIG_SETMASK && wanted != 0 && ++passed == wanted) raise(SIGUSR1);
  return real(how, set, before);
}

namespace {

void fork_here(int) {
  wanted = 0;
  forked = fork();
}

std::uint64_t ring_of_this_thread() {
  static const Buffer src(64 * kib), dst(64 * kib);
  haul_request request = haul_request_copy(dst.data(), src.data(), src.size());
  request.flags = HAUL_DEDICATED;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), 0);
  return ticket.where;
}

int failed_copy_is_told() {
  const Buffer src(4 * kib);
  void* const hidden = mmap(nullptr, 4 * kib, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  haul_request request = haul_request_copy(hidden, src.data(), src.size());
  request.flags = HAUL_DEDICATED | HAUL_CHECKED;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), HAUL_EFAULT);
  return 0;
}

// Everything works, and each thread has a ring of its own.
void is_whole() {
  CHILD_CHECK(wake_and_see());
  copy_works(mib, 1);
  failed_copy_is_told();
  CHILD_EQUAL(haul_free(haul_alloc(4 * kib)), 0);
  const std::uint64_t own = ring_of_this_thread();
  std::thread([own] { CHILD_CHECK(ring_of_this_thread() != own); }).join();
  CHILD_EQUAL(ring_of_this_thread(), own);
  CHILD_EQUAL(run_child([] {
                copy_works(mib, 2);
                return 0;
              }),
              0);
}

constexpr int no_such_instant = 99;

int one_instant(void (*prepare)(), void (*operation)(), unsigned instant) {
  always_mover();
  prepare();
  struct sigaction action {};
  action.sa_handler = fork_here;
  sigaction(SIGUSR1, &action, nullptr);
  passed = 0;
  wanted = instant;
  operation();
  if (wanted != 0) return no_such_instant;
  if (forked == 0) {
    is_whole();
    _exit(0);
  }
  CHILD_EQUAL(end_of(forked, 40), 0);
  is_whole();
  return 0;
}

void each_instant(void (*prepare)(), void (*operation)()) {
  if (sanitizer) GTEST_SKIP() << "a sanitizer's runtime has a pthread_sigmask() of its own";
  unsigned instant = 0;
  int end = 0;
  while (end == 0) {
    ++instant;
    end = run_child([&] { return one_instant(prepare, operation, instant); }, 60);
  }
  EXPECT_EQ(end, no_such_instant) << "at instant " << instant;
  EXPECT_GE(instant, 2u);
}

void nothing() {}
void use() {
  copy_works(mib, 3);
}
void wake() {
  haul_wake();
}
void fork_and_go_on() {
  const pid_t child = fork();
  if (child == 0) {
    copy_works(mib, 4);
    _exit(0);
  }
  // The handler's child comes here as well. Its parent may have forked already: then this is none
  // of its children.
  const int end = end_of(child, 20);
  CHILD_CHECK(end == 0 || (end == -1 && forked == 0));
}

TEST(OpenedSignals, OfAFirstCopy) {
  each_instant(nothing, use);
}

TEST(OpenedSignals, OfAWake) {
  each_instant(nothing, wake);
}

TEST(OpenedSignals, OfAFork) {
  each_instant(use, fork_and_go_on);
}

TEST(OpenedSignals, OfAFailure) {
  each_instant(use, [] { failed_copy_is_told(); });
}

TEST(OpenedSignals, OfMemory) {
  each_instant(use, [] { CHILD_EQUAL(haul_free(haul_alloc(mib)), 0); });
}

}  // namespace
