// Signal handlers that do what they should not, amid a copy of their own thread: exit(), and a
// fence. Neither may hang.
#include <gtest/gtest.h>
#include <sys/time.h>

#include "support.hpp"

namespace {

using namespace e2e;

constexpr std::size_t large = 64 * mib;

void on_signal(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  CHILD_EQUAL(sigaction(number, &action, nullptr), 0);
}

void every(long microseconds) {
  const itimerval timer{{0, microseconds}, {0, microseconds}};
  CHILD_EQUAL(setitimer(ITIMER_REAL, &timer, nullptr), 0);
}

// Memory that costs no time to make: its bytes do not matter.
void touch(const Buffer& buffer, int value) {
  std::memset(buffer.data(), value, buffer.size());
}

void exit_with_7(int) {
  std::exit(7);
}

TEST(Handlers, ExitAmidAWaitEndsTheProcess) {
  if (thread_sanitizer) GTEST_SKIP() << "delays signals until no copy is under way";
  for (const char* mover : {"thread", "caller"}) {
    for (long microseconds : {1000l, 3300l, 7700l, 12500l}) {
      EXPECT_EQ(run_child(
                    [&] {
                      always_mover();
                      setenv("HAUL_PLAN_MOVER", mover, 1);
                      const Buffer src(large), dst(large);
                      touch(src, 1);
                      touch(dst, 2);
                      copy_works(mib, 1);
                      haul_wake();
                      on_signal(SIGALRM, exit_with_7);
                      every(microseconds);
                      for (;;) haul_wait(haul_copy(dst.data(), src.data(), large));
                      return 1;
                    },
                    20),
                7)
          << mover << ", " << microseconds << " us";
    }
  }
}

// The mover's thread runs the handler where it is the mover that faults.
TEST(Handlers, ExitFromACrashHandlerEndsTheProcess) {
  if (sanitizer) GTEST_SKIP() << "has a crash handler of its own";
  for (const bool help : {false, true}) {
    EXPECT_EQ(run_child(
                  [&] {
                    always_mover();
                    const Buffer src(mib), dst(mib);
                    touch(src, 1);
                    copy_works(mib, 1);
                    if (cpus_allowed() > 1) CHILD_CHECK(wake_and_see());
                    on_signal(SIGSEGV, exit_with_7);
                    mprotect(src.data() + 512 * kib, 512 * kib, PROT_NONE);
                    const haul_ticket ticket = haul_copy(dst.data(), src.data(), mib);
                    if (!help) sleep_ms(15'000);
                    haul_wait(ticket);
                    return 1;
                  },
                  20),
              7)
        << (help ? "helping" : "not helping");
  }
}

haul_ticket pending;
unsigned refused = 0, taken = 0, wrong = 0;
alignas(64) unsigned char fence_src[8192], fence_dst[8192];

// A refused fence moves nothing; one that is taken has waited for what was pending.
void fence(int) {
  std::memset(fence_dst, 0, sizeof fence_dst);
  haul_request request = haul_request_copy(fence_dst, fence_src, sizeof fence_dst);
  request.flags = HAUL_FENCE | HAUL_INLINE;
  haul_ticket ticket{};
  const haul_ticket before = pending;
  const int result = haul_submit(&request, 1, &ticket);
  if (result == HAUL_EAGAIN) {
    ++refused;
    if (fence_dst[0] != 0) ++wrong;
  } else if (result == 1) {
    ++taken;
    if (haul_test(ticket) != 1 || haul_test(before) != 1 ||
        std::memcmp(fence_dst, fence_src, sizeof fence_dst) != 0)
      ++wrong;
  } else {
    ++wrong;
  }
}

TEST(Handlers, AFenceThatCannotWaitIsRefused) {
  EXPECT_EQ(
      run_child([] {
        always_mover();
        for (std::size_t at = 0; at < sizeof fence_src; ++at)
          fence_src[at] = Buffer::expected(5, at);
        const Buffer src(large), dst(large);
        touch(src, 1);
        touch(dst, 2);
        copy_works(mib, 1);
        const bool mover = cpus_allowed() > 1 && wake_and_see();
        on_signal(SIGALRM, fence);
        every(2000);
        timespec begin, now;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do {
          std::memset(dst.data() + large - 64, 0, 64);
          pending = haul_copy(dst.data(), src.data(), large);
          CHILD_EQUAL(haul_wait(pending), 0);
          CHILD_EQUAL(std::memcmp(dst.data() + large - 64, src.data() + large - 64, 64), 0);
          clock_gettime(CLOCK_MONOTONIC, &now);
        } while (now.tv_sec - begin.tv_sec < (refused < 10 && mover && !thread_sanitizer ? 20 : 2));
        CHILD_EQUAL(wrong, 0);
        CHILD_CHECK(refused + taken > 0);
        // Amid a chunk of its own thread it must be refused; TSan lets no signal in there.
        if (mover && !thread_sanitizer) CHILD_CHECK(refused >= 10);
        // Once nothing is pending it is taken.
        every(0);
        const unsigned former = taken;
        fence(0);
        CHILD_EQUAL(taken, former + 1);
        CHILD_EQUAL(wrong, 0);
        return 0;
      }),
      0);
}

}  // namespace
