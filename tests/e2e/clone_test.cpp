// Children of a bare clone(), which no fork handler saw: their copies work (by themselves, for such
// a process can make no thread), the parent's tickets and failures are not theirs, and they end in
// peace.
#include <gtest/gtest.h>

#include "load.hpp"
#include "support.hpp"

namespace {

using namespace e2e;

// A child that no fork handler saw.
template <class Body>
int run_bare_clone(Body body) {
  std::fflush(nullptr);
  const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(body());
  }
  return end_of(static_cast<pid_t>(child), 20);
}

TEST(Clone, ABareCloneBeginsAnew) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(16 * mib), dst(16 * mib);
              src.fill(1);
              for (int round = 0; round < 20; ++round) {
                dst.clear();
                const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
                CHILD_EQUAL(run_bare_clone([&] {
                              const bool named = ticket.where >> 32 != 0;
                              if (named) {
                                CHILD_EQUAL(haul_test(ticket), HAUL_ESTALE);
                                CHILD_EQUAL(haul_wait(ticket), HAUL_ESTALE);
                              }
                              copy_works(4 * mib, 2);
                              if (named) CHILD_EQUAL(haul_wait(ticket), HAUL_ESTALE);
                              CHILD_EQUAL(run_child(
                                              [] {
                                                copy_works(mib, 4);
                                                return 0;
                                              },
                                              20),
                                          0);
                              haul_completion entry;
                              CHILD_EQUAL(haul_reap(&entry, 1), 0);
                              CHILD_EQUAL(haul_drain(), 0);
                              std::exit(0);
                              return 0;
                            }),
                            0);
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
              }
              return 0;
            }),
            0);
}

TEST(Clone, ABareCloneThatNeverCopiesExitsInPeace) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(16 * mib), dst(16 * mib);
              for (int round = 0; round < 20; ++round) {
                haul_copy(dst.data(), src.data(), src.size());
                CHILD_EQUAL(run_bare_clone([] {
                              std::exit(0);
                              return 0;
                            }),
                            0);
              }
              CHILD_EQUAL(haul_drain(), 0);
              return 0;
            }),
            0);
}

TEST(Clone, BareClonesUnderLoadDoNotHang) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child(
                [] {
                  always_mover();
                  setenv("HAUL_MOVER_SPIN_US", "0", 1);  // the mover takes its locks all the time
                  Load load(2);
                  for (int round = 0; round < 150; ++round) {
                    CHILD_EQUAL(run_bare_clone([] {
                                  // No allocation here: the C library's locks were copied as they
                                  // stood.
                                  static unsigned char from[256 * kib], to[256 * kib];
                                  std::memset(from, 7, sizeof from);
                                  for (int i = 0; i < 8; ++i) {
                                    if (haul_wait(haul_copy(to, from, sizeof to)) != 0) return 1;
                                    if (std::memcmp(to, from, sizeof to) != 0) return 2;
                                    std::memset(to, 0, sizeof to);
                                  }
                                  return 0;
                                }),
                                0);
                  }
                  return 0;
                },
                120),
            0);
}

// The parent's failures are not the child's, though its rings and their numbers begin anew.
TEST(Clone, ABareCloneInheritsNoFailures) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(4 * kib), dst(4 * kib), hidden(4 * kib);
              mprotect(hidden.data(), hidden.size(), PROT_NONE);
              haul_request request = haul_request_copy(hidden.data(), src.data(), src.size());
              request.flags = HAUL_DEDICATED | HAUL_CHECKED | HAUL_NONBLOCK;
              for (int i = 0; i < 400; ++i) {
                while (haul_submit(&request, 1, nullptr) == HAUL_EAGAIN) sched_yield();
              }
              CHILD_CHECK(haul_drain() == HAUL_EFAULT || true);
              CHILD_EQUAL(run_bare_clone([&] {
                            haul_ticket tickets[300];
                            haul_request good =
                                haul_request_copy(dst.data(), src.data(), src.size());
                            good.flags = HAUL_DEDICATED | HAUL_NONBLOCK;
                            for (haul_ticket& ticket : tickets) {
                              while (haul_submit(&good, 1, &ticket) == HAUL_EAGAIN) sched_yield();
                            }
                            for (int i = 0; i < 600; ++i) {
                              while (haul_submit(&good, 1, nullptr) == HAUL_EAGAIN) sched_yield();
                            }
                            for (const haul_ticket& ticket : tickets)
                              CHILD_EQUAL(haul_wait(ticket), 0);
                            CHILD_EQUAL(state_now().unobserved, 0);
                            return 0;
                          }),
                          0);
              return 0;
            }),
            0);
}

}  // namespace
