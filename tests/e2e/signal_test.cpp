// A signal handler that copies, whatever the thread was doing when it came.
#include <gtest/gtest.h>
#include <sys/time.h>

#include <atomic>

#include "support.hpp"

namespace {

using namespace e2e;

std::atomic<unsigned> handled{0}, handler_failures{0};
unsigned char handler_src[4 * 64 * kib], handler_dst[4 * 64 * kib];
haul_ticket handler_tickets[4];
unsigned handler_bits = 0;

// Looks at its former copies, begins new ones. 64 KiB each: the mover takes them.
void on_timer(int) {
  const int saved = errno;
  const unsigned turn = handled.fetch_add(1) % 4;
  unsigned char* to = handler_dst + turn * 64 * kib;
  const unsigned char* from = handler_src + turn * 64 * kib;
  const int former = haul_test(handler_tickets[turn]);
  if (former < 0) ++handler_failures;
  if (former != 0) {
    if ((handler_bits >> turn & 1) != 0 && std::memcmp(to, from, 64 * kib) != 0) ++handler_failures;
    std::memset(to, 0, 64 * kib);
    handler_tickets[turn] = haul_copy(to, from, 64 * kib);
    handler_bits |= 1u << turn;
  }
  errno = saved;
}

void start_timer(unsigned microseconds) {
  // A handler that takes longer than the interval is all that ever runs; a sanitizer makes it slow.
  if (sanitizer) microseconds *= 10;
  for (std::size_t at = 0; at < sizeof handler_src; ++at) handler_src[at] = Buffer::expected(7, at);
  struct sigaction action {};
  action.sa_handler = on_timer;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval timer{{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void stop_timer() {
  const itimerval none{};
  setitimer(ITIMER_REAL, &none, nullptr);
  for (const haul_ticket& ticket : handler_tickets) CHILD_EQUAL(haul_wait(ticket), 0);
  CHILD_EQUAL(handler_failures.load(), 0);
  CHILD_CHECK(handled > (sanitizer ? 20 : 100));
}

bool over(const timespec& begin, int seconds) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec - begin.tv_sec >= seconds;
}

TEST(Signals, AHandlerCopiesWhileTheProgramSubmitsAndWaits) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(mib), dst(mib);
              src.fill(1);
              copy_works(mib, 2);
              CHILD_CHECK(wake_and_see());
              start_timer(300);
              timespec begin;
              clock_gettime(CLOCK_MONOTONIC, &begin);
              for (unsigned round = 0; !over(begin, 3); ++round) {
                std::memset(dst.data(), 0, 256 * kib);
                haul_ticket tickets[64];
                for (std::size_t i = 0; i < 64; ++i)
                  tickets[i] = haul_copy(dst.data() + i * 4096, src.data() + i * 4096, 4096);
                for (const haul_ticket& ticket : tickets) {
                  if (round % 2 == 0) {
                    while (haul_test(ticket) == 0) {
                    }
                  }
                  CHILD_EQUAL(haul_wait(ticket), 0);
                }
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), 256 * kib), 0);
              }
              stop_timer();
              return 0;
            }),
            0);
}

// Vectors take room in the ring beside the slot; a handler's copies in between must not take it for
// theirs.
TEST(Signals, AHandlerBetweenVectorsFencesAndCompletions) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(512 * kib), dst(512 * kib);
              src.fill(3);
              copy_works(mib, 2);
              CHILD_CHECK(wake_and_see());
              start_timer(300);
              timespec begin;
              clock_gettime(CLOCK_MONOTONIC, &begin);
              static haul_completion entries[1024];
              while (!over(begin, 3)) {
                dst.clear();
                unsigned posted = 0;
                for (unsigned part = 0; part < 32; ++part) {
                  haul_extent to[64], from[64];
                  const std::size_t base = part * 16 * kib;
                  for (unsigned i = 0; i < 64; ++i) {
                    to[i] = {0, 0, dst.data() + base + i * 256, 256};
                    from[i] = {0, 0, src.data() + base + (i == 0 ? 0 : i * 256 - 8),
                               i == 0    ? 248u
                               : i == 63 ? 264u
                                         : 256u};
                  }
                  haul_request request{};
                  request.size = sizeof request;
                  request.dst_vector = to;
                  request.src_vector = from;
                  request.dst_count = request.src_count = 64;
                  request.flags = HAUL_COMPLETE | (part % 5 == 0 ? HAUL_FENCE : 0);
                  haul_ticket ticket{};
                  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
                  ++posted;
                }
                for (unsigned reaped = 0; reaped < posted;) {
                  const int count = haul_reap(entries, 1024);
                  CHILD_CHECK(count >= 0);
                  for (int i = 0; i < count; ++i) CHILD_EQUAL(entries[i].status, 0);
                  reaped += static_cast<unsigned>(count);
                }
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
              }
              stop_timer();
              return 0;
            }),
            0);
}

TEST(Signals, AHandlerWhileFailuresAreRecordedAndLookedAt) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(4 * kib), hidden(4 * kib);
              mprotect(hidden.data(), hidden.size(), PROT_NONE);
              copy_works(mib, 2);
              CHILD_CHECK(wake_and_see());
              start_timer(300);
              timespec begin;
              clock_gettime(CLOCK_MONOTONIC, &begin);
              while (!over(begin, 2)) {
                haul_ticket tickets[32];
                for (haul_ticket& ticket : tickets) {
                  haul_request request = haul_request_copy(hidden.data(), src.data(), src.size());
                  request.flags = HAUL_DEDICATED | HAUL_CHECKED;
                  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
                }
                for (const haul_ticket& ticket : tickets)
                  CHILD_EQUAL(haul_wait(ticket), HAUL_EFAULT);
                for (const haul_ticket& ticket : tickets)
                  CHILD_EQUAL(haul_wait(ticket), HAUL_EFAULT);
              }
              stop_timer();
              return 0;
            }),
            0);
}

// The mover falls asleep and is woken, over and over, by both the program and its handler.
TEST(Signals, AHandlerWhileTheMoverSleepsAndWakes) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              setenv("HAUL_MOVER_LEASE", "off", 1);
              setenv("HAUL_MOVER_SPIN_US", "0", 1);
              const Buffer src(4 * mib), dst(4 * mib);
              src.fill(1);
              copy_works(4 * mib, 2);
              CHILD_EQUAL(haul_wake(), 0);
              start_timer(500);
              timespec begin;
              clock_gettime(CLOCK_MONOTONIC, &begin);
              while (!over(begin, 3)) {
                std::memset(dst.data(), 0, mib);
                CHILD_EQUAL(haul_wait(haul_copy(dst.data(), src.data(), mib)), 0);
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), mib), 0);
                haul_wake();
                haul_query(nullptr);
                state_now();
              }
              stop_timer();
              return 0;
            }),
            0);
}

TEST(Signals, HaulsThreadsTakeNone) {
  EXPECT_EQ(run_child([] {
              always_mover();
              copy_works(mib, 1);
              CHILD_CHECK(wake_and_see());
              static std::atomic<long> taken_by{0};
              struct sigaction action {};
              action.sa_handler = [](int) { taken_by = syscall(SYS_gettid); };
              sigaction(SIGUSR1, &action, nullptr);
              const long self = syscall(SYS_gettid);
              sigset_t set;
              sigemptyset(&set);
              sigaddset(&set, SIGUSR1);
              // Blocked here, it could only be delivered to a thread of haul's.
              sigprocmask(SIG_BLOCK, &set, nullptr);
              kill(getpid(), SIGUSR1);
              copy_works(16 * mib, 2);
              sleep_ms(20);
              CHILD_EQUAL(taken_by.load(), 0);
              sigprocmask(SIG_UNBLOCK, &set, nullptr);
              CHILD_EQUAL(taken_by.load(), self);
              return 0;
            }),
            0);
}

}  // namespace
