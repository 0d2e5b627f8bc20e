// Memory that is not there: HAUL_CHECKED tells how much is good and the process lives; without it
// the process gets SIGSEGV or SIGBUS.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "support.hpp"

namespace {

using namespace e2e;

constexpr std::size_t length = 256 * kib;

haul_ticket checked_copy(void* dst, const void* src, std::size_t bytes, unsigned flags) {
  haul_request request = haul_request_copy(dst, src, bytes);
  request.flags = HAUL_CHECKED | flags;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  return ticket;
}

// The copy fails, `good` bytes from the front are in place (to the page), and nothing is claimed
// that is not so.
void fails_at(unsigned char* dst, const unsigned char* src, std::size_t bytes, std::size_t bad_from,
              unsigned flags) {
  const haul_ticket ticket = checked_copy(dst, src, bytes, flags);
  CHILD_EQUAL(haul_wait(ticket), HAUL_EFAULT);
  CHILD_EQUAL(haul_test(ticket), HAUL_EFAULT);
  CHILD_CHECK(std::strlen(haul_last_error()) > 20);
  std::size_t good = 0;
  CHILD_EQUAL(haul_progress(ticket, &good), HAUL_EFAULT);
  CHILD_CHECK(good <= bad_from);
  CHILD_CHECK(good + 4096 >= bad_from);  // not pessimistic either
  for (std::size_t at = 0; at < good; ++at) CHILD_EQUAL(dst[at], src[at]);
}

int with_both_movers(int (*body)(unsigned flags)) {
  const int by_caller = run_child([&] {
    quiet_environment();
    return body(HAUL_INLINE);
  });
  if (by_caller != 0) return by_caller;
  return run_child([&] {
    always_mover();
    return body(HAUL_DEDICATED);
  });
}

TEST(Checked, AccessibleRangesAreCopied) {
  EXPECT_EQ(with_both_movers([](unsigned flags) {
              const Buffer src(length), dst(length);
              src.fill(1);
              CHILD_EQUAL(haul_wait(checked_copy(dst.data(), src.data(), length, flags)), 0);
              CHILD_EQUAL(std::memcmp(dst.data(), src.data(), length), 0);
              haul_request fill = haul_request_fill(dst.data() + 1, 0xabcd, 2, length - 1);
              fill.flags = HAUL_CHECKED | flags;
              haul_ticket ticket{};
              CHILD_EQUAL(haul_submit(&fill, 1, &ticket), 1);
              CHILD_EQUAL(haul_wait(ticket), 0);
              CHILD_CHECK(dst[1] == 0xcd && dst[2] == 0xab && dst[length - 1] == 0xcd);
              return 0;
            }),
            0);
}

TEST(Checked, ReadOnlyDestination) {
  EXPECT_EQ(with_both_movers([](unsigned flags) {
              const Buffer src(length), dst(length);
              src.fill(2);
              for (const std::size_t bad :
                   {std::size_t{0}, std::size_t{4096}, 100 * kib, length - 4096}) {
                dst.clear();
                mprotect(dst.data() + bad, length - bad, PROT_READ);
                fails_at(dst.data(), src.data(), length, bad, flags);
                mprotect(dst.data(), length, PROT_READ | PROT_WRITE);
              }
              return 0;
            }),
            0);
}

TEST(Checked, SourceWithoutAccess) {
  EXPECT_EQ(with_both_movers([](unsigned flags) {
              const Buffer src(length), dst(length);
              src.fill(3);
              for (const std::size_t bad :
                   {std::size_t{0}, std::size_t{8192}, 128 * kib, length - 4096}) {
                dst.clear();
                mprotect(src.data() + bad, length - bad, PROT_NONE);
                const haul_ticket ticket = checked_copy(dst.data(), src.data(), length, flags);
                CHILD_EQUAL(haul_wait(ticket), HAUL_EFAULT);
                std::size_t good = 0;
                CHILD_EQUAL(haul_progress(ticket, &good), HAUL_EFAULT);
                CHILD_CHECK(good <= bad && good + 4096 >= bad);
                mprotect(src.data(), length, PROT_READ | PROT_WRITE);
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), good), 0);
              }
              return 0;
            }),
            0);
}

TEST(Checked, PastTheEndOfAMapping) {
  EXPECT_EQ(with_both_movers([](unsigned flags) {
              const Buffer src(length), dst(length);
              src.fill(4);
              fails_at(dst.data() + 4096, src.data(), length, length - 4096,
                       flags);  // dst's guard page
              return 0;
            }),
            0);
}

TEST(Checked, FileTruncatedUnderTheMapping) {
  EXPECT_EQ(with_both_movers([](unsigned flags) {
              const int fd = memfd_create("e2e", MFD_CLOEXEC);
              CHILD_CHECK(fd >= 0 && ftruncate(fd, length) == 0);
              auto* file = static_cast<unsigned char*>(
                  mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
              CHILD_CHECK(file != MAP_FAILED);
              const Buffer other(length);
              other.fill(5);
              std::memcpy(file, other.data(), length);
              CHILD_EQUAL(ftruncate(fd, 64 * kib), 0);
              fails_at(file, other.data(), length, 64 * kib, flags);
              const haul_ticket ticket = checked_copy(other.data(), file, length, flags);
              CHILD_EQUAL(haul_wait(ticket), HAUL_EFAULT);
              return 0;
            }),
            0);
}

TEST(Checked, AFailedRequestKeepsItsNotificationWordAndPostsItsStatus) {
  EXPECT_EQ(with_both_movers([](unsigned flags) {
              const Buffer src(length), dst(length);
              src.fill(6);
              mprotect(dst.data() + 64 * kib, 4096, PROT_NONE);
              std::uint64_t word = 5;
              haul_request request = haul_request_copy(dst.data(), src.data(), length);
              request.flags = HAUL_CHECKED | HAUL_COMPLETE | flags;
              request.notify = &word;
              request.notify_value = 6;
              request.user_data = 77;
              haul_ticket ticket{};
              CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
              haul_completion entry{};
              while (haul_reap(&entry, 1) == 0) sched_yield();
              CHILD_EQUAL(entry.status, HAUL_EFAULT);
              CHILD_EQUAL(entry.user_data, 77);
              CHILD_CHECK(entry.good_bytes <= 64 * kib && entry.good_bytes + 4096 >= 64 * kib);
              CHILD_EQUAL(haul_test(ticket), HAUL_EFAULT);
              CHILD_EQUAL(word, 5);
              CHILD_EQUAL(state_now().failed, 1);
              CHILD_EQUAL(state_now().unobserved, 0);
              return 0;
            }),
            0);
}

TEST(Checked, WaitRangeOfAFailedRequestSaysSo) {
  EXPECT_EQ(with_both_movers([](unsigned flags) {
              const Buffer src(length), dst(length);
              mprotect(dst.data() + 128 * kib, length - 128 * kib, PROT_NONE);
              const haul_ticket ticket = checked_copy(dst.data(), src.data(), length, flags);
              CHILD_EQUAL(haul_wait_range(ticket, 128 * kib, 4096), HAUL_EFAULT);
              CHILD_EQUAL(haul_wait(ticket), HAUL_EFAULT);
              return 0;
            }),
            0);
}

// Without HAUL_CHECKED: as memcpy, on whichever thread. ASan turns the signal into its own exit.
TEST(Checked, WithoutItTheProcessGetsTheSignal) {
  for (const unsigned flags : {unsigned{HAUL_INLINE}, unsigned{HAUL_DEDICATED}}) {
    for (const int kind : {0, 1, 2}) {
      const int end = run_child([&] {
        always_mover();
        const rlimit no_core{0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        const Buffer src(length), dst(length);
        const int fd = memfd_create("e2e", MFD_CLOEXEC);
        CHILD_CHECK(fd >= 0 && ftruncate(fd, length) == 0);
        void* file = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        void* to = dst.data();
        if (kind == 0) mprotect(dst.data() + 64 * kib, 4096, PROT_READ);
        if (kind == 1) mprotect(src.data() + 64 * kib, 4096, PROT_NONE);
        if (kind == 2) {
          CHILD_EQUAL(ftruncate(fd, 4096), 0);
          to = file;
        }
        haul_request request = haul_request_copy(to, src.data(), length);
        request.flags = flags;
        haul_ticket ticket{};
        haul_submit(&request, 1, &ticket);
        haul_wait(ticket);
        return 0;
      });
      EXPECT_NE(end, 0) << "kind " << kind << " flags " << flags;
      if (!sanitizer) {
        EXPECT_EQ(end, 1000 + (kind == 2 ? SIGBUS : SIGSEGV))
            << "kind " << kind << " flags " << flags;
      }
    }
  }
}

}  // namespace
