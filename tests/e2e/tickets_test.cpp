// Tickets that are not what they were: of another process, of the future, of a former tenancy,
// garbage, failed and forgotten.
#include <gtest/gtest.h>

#include "support.hpp"

namespace {

using namespace e2e;

// A ticket of a request that a mover takes; fenced, for they share a destination.
haul_ticket dedicated_copy(const Buffer& dst, const Buffer& src, unsigned more_flags = 0) {
  haul_request request = haul_request_copy(dst.data(), src.data(), src.size());
  request.flags = HAUL_DEDICATED | HAUL_FENCE | more_flags;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  return ticket;
}

TEST(Tickets, ZeroIsDone) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              const haul_ticket zero{0, 0};
              CHILD_EQUAL(haul_test(zero), 1);
              CHILD_EQUAL(haul_wait(zero), 0);
              CHILD_EQUAL(haul_wait_for(zero, 0), 0);
              CHILD_EQUAL(haul_wait_range(zero, 5, 10), 0);
              CHILD_EQUAL(haul_test_range(zero, 5, 10), 1);
              std::size_t good = 1;
              CHILD_EQUAL(haul_progress(zero, &good), 1);
              return 0;
            }),
            0);
}

TEST(Tickets, GarbageNeverCrashesNorHangs) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(64 * kib), dst(64 * kib);
              src.fill(1);
              const haul_ticket mine = dedicated_copy(dst, src);
              CHILD_EQUAL(haul_wait(mine), 0);
              std::uint64_t x = 88172645463325252u;
              const auto random = [&] {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                return x;
              };
              for (int i = 0; i < 20000; ++i) {
                haul_ticket ticket{random(), random()};
                switch (i % 5) {
                  case 1: ticket.where = mine.where; break;  // a tenancy that never was
                  case 2:
                    ticket.where = (mine.where & ~0xffffffffu) | (random() & 0xffff);
                    break;                                     // a ring that is none
                  case 3: ticket.where &= 0xffffffffu; break;  // an outcome that is none
                  case 4: ticket.tenancy = mine.tenancy; break;
                  default: break;
                }
                if (ticket.where == mine.where && ticket.tenancy <= mine.tenancy) continue;
                std::size_t good = 0;
                const int tested = haul_test(ticket);
                CHILD_CHECK(tested < 0 || (ticket.where & 0xffffffffu) == ticket.where);
                CHILD_CHECK(haul_wait(ticket) == (tested == 1 ? 0 : tested));
                haul_wait_for(ticket, 1);
                haul_wait_range(ticket, static_cast<std::size_t>(random()),
                                static_cast<std::size_t>(random()));
                haul_test_range(ticket, static_cast<std::size_t>(random()),
                                static_cast<std::size_t>(random()));
                haul_progress(ticket, &good);
              }
              copy_works(mib, 2);
              return 0;
            }),
            0);
}

TEST(Tickets, OfTheFutureAreInvalid) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(64 * kib), dst(64 * kib);
              haul_ticket ticket = dedicated_copy(dst, src);
              CHILD_EQUAL(haul_wait(ticket), 0);
              for (const std::uint64_t ahead : {1u, 255u, 256u, 257u, 100000u}) {
                haul_ticket later = ticket;
                later.tenancy += ahead;
                CHILD_EQUAL(haul_test(later), HAUL_EINVAL);
                CHILD_EQUAL(haul_wait(later), HAUL_EINVAL);
                CHILD_EQUAL(haul_wait_range(later, 0, 1), HAUL_EINVAL);
                CHILD_EQUAL(haul_wait_range_for(later, 0, 1, 0), HAUL_EINVAL);
              }
              return 0;
            }),
            0);
}

TEST(Tickets, OfAnotherProcessAreStale) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const int other = run_child([&] {
    always_mover();
    const Buffer src(64 * kib), dst(64 * kib);
    const haul_ticket ticket = dedicated_copy(dst, src);
    CHILD_EQUAL(write(pipes[1], &ticket, sizeof ticket), sizeof ticket);
    CHILD_EQUAL(haul_wait(ticket), 0);
    return 0;
  });
  ASSERT_EQ(other, 0);
  EXPECT_EQ(run_child([&] {
              always_mover();
              haul_ticket foreign;
              CHILD_EQUAL(read(pipes[0], &foreign, sizeof foreign), sizeof foreign);
              CHILD_EQUAL(haul_test(foreign), HAUL_ESTALE);  // before this process has any ring
              CHILD_EQUAL(haul_wait(foreign), HAUL_ESTALE);
              copy_works(mib, 1);
              CHILD_EQUAL(haul_test(foreign), HAUL_ESTALE);
              CHILD_EQUAL(haul_wait(foreign), HAUL_ESTALE);
              CHILD_EQUAL(haul_wait_for(foreign, 1000), HAUL_ESTALE);
              CHILD_EQUAL(haul_wait_range(foreign, 0, 1), HAUL_ESTALE);
              CHILD_EQUAL(haul_wait_range_for(foreign, 0, 1, 1000), HAUL_ESTALE);
              CHILD_EQUAL(haul_test_range(foreign, 0, 1), HAUL_ESTALE);
              std::size_t good = 1;
              CHILD_EQUAL(haul_progress(foreign, &good), HAUL_ESTALE);
              CHILD_EQUAL(good, 0);
              return 0;
            }),
            0);
  close(pipes[0]);
  close(pipes[1]);
}

TEST(Tickets, OfAFormerTenancyAreDone) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(4 * kib), dst(4 * kib);
              haul_ticket old[64];
              for (haul_ticket& ticket : old) ticket = dedicated_copy(dst, src);
              for (int i = 0; i < 2000; ++i) CHILD_EQUAL(haul_wait(dedicated_copy(dst, src)), 0);
              for (const haul_ticket& ticket : old) {
                CHILD_EQUAL(haul_test(ticket), 1);
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(haul_wait_range(ticket, 100, 200), 0);
                CHILD_EQUAL(haul_test_range(ticket, 100, 200), 1);
              }
              return 0;
            }),
            0);
}

TEST(Tickets, AFailureStaysUntilItIsObserved) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(64 * kib), dst(64 * kib), hidden(64 * kib);
              mprotect(hidden.data(), hidden.size(), PROT_NONE);
              const haul_ticket failed = dedicated_copy(hidden, src, HAUL_CHECKED);
              haul_ticket good_ticket = dedicated_copy(dst, src, HAUL_CHECKED);
              // Three times round the ring: another tenant has the slot.
              for (int i = 0; i < 768; ++i) CHILD_EQUAL(haul_wait(dedicated_copy(dst, src)), 0);
              CHILD_EQUAL(state_now().unobserved, 1);
              CHILD_EQUAL(haul_test(good_ticket), 1);
              std::size_t good = 99;
              CHILD_EQUAL(haul_progress(failed, &good), HAUL_EFAULT);
              CHILD_EQUAL(good, 0);
              CHILD_EQUAL(state_now().unobserved, 1);  // progress is no observation
              CHILD_EQUAL(haul_wait(failed), HAUL_EFAULT);
              CHILD_EQUAL(state_now().unobserved, 0);
              CHILD_EQUAL(state_now().failed, 1);
              return 0;
            }),
            0);
}

// Failures that nobody looks at: the first `count` tickets afterwards say what happened, or that it
// was forgotten; never success.
void many_failures(int count, bool all_remembered) {
  always_mover();
  const Buffer src(4 * kib), dst(4 * kib), hidden(4 * kib);
  src.fill(1);
  mprotect(hidden.data(), hidden.size(), PROT_NONE);
  auto* tickets =
      static_cast<haul_ticket*>(std::calloc(static_cast<std::size_t>(count), sizeof(haul_ticket)));
  haul_request request = haul_request_copy(hidden.data(), src.data(), src.size());
  // A full ring would make the caller copy, and an inline failure lies in its ticket alone.
  request.flags = HAUL_DEDICATED | HAUL_CHECKED | HAUL_NONBLOCK;
  for (int i = 0; i < count; ++i) {
    while (haul_submit(&request, 1, &tickets[i]) == HAUL_EAGAIN) sched_yield();
  }
  while (haul_test(tickets[count - 1]) == 0) sched_yield();
  int remembered = 0;
  for (int i = 0; i < count; ++i) {
    const int result = haul_wait(tickets[i]);
    CHILD_CHECK(result == HAUL_EFAULT || result == HAUL_ESTALE);
    remembered += result == HAUL_EFAULT;
  }
  if (all_remembered) CHILD_EQUAL(remembered, count);
  CHILD_CHECK(remembered >= 1000);
  const haul_ticket fresh = dedicated_copy(dst, src);
  CHILD_EQUAL(haul_wait(fresh), 0);
  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
  std::free(tickets);
}

long resident_kib() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    long size = 0;
    if (std::fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
    std::fclose(file);
  }
  return pages * 4;
}

TEST(Tickets, AThousandFailuresAreAllRemembered) {
  EXPECT_EQ(run_child([] {
              many_failures(1000, true);
              return 0;
            }),
            0);
}

TEST(Tickets, AHundredThousandFailuresTakeBoundedMemory) {
  EXPECT_EQ(run_child(
                [] {
                  many_failures(1000, true);
                  const long before = resident_kib();
                  many_failures(100000, false);
                  // The ledger is 4 MiB; a leak of 64 bytes a failure would be 6 MiB beside it and
                  // the tickets.
                  if (!sanitizer) CHILD_CHECK(resident_kib() - before < 8 * 1024);
                  return 0;
                },
                120),
            0);
}

TEST(Tickets, SuccessesAfterAFloodOfFailuresAreNotStale) {
  EXPECT_EQ(run_child(
                [] {
                  many_failures(100000, false);
                  const Buffer src(4 * kib), dst(4 * kib);
                  haul_ticket tickets[300];
                  for (haul_ticket& ticket : tickets) ticket = dedicated_copy(dst, src);
                  for (int i = 0; i < 600; ++i) CHILD_EQUAL(haul_wait(dedicated_copy(dst, src)), 0);
                  for (const haul_ticket& ticket : tickets) CHILD_EQUAL(haul_wait(ticket), 0);
                  return 0;
                },
                120),
            0);
}

}  // namespace
