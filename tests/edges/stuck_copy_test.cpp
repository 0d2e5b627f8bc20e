// Memory that does not arrive, a crash handler that does not return: the copy cannot end, and
// exit(), haul_shutdown() and fork() can, and say what they leave. Signals work throughout.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <string>
#include <thread>

#include "e2e/support.hpp"
#include "edges/absent_memory.hpp"

namespace {

using namespace e2e;

constexpr std::size_t bytes = mib;

#define NEEDS_USERFAULTFD()                                                        \
  if (run_child([] { return memory_that_does_not_arrive(bytes) ? 0 : 1; }) != 0) { \
    GTEST_SKIP() << "the kernel gives no userfaultfd()";                           \
  }

// A copy that the mover has begun and nobody can end.
haul_ticket stuck_copy(const char* patience_ms) {
  always_mover();
  setenv("HAUL_MOVER_PATIENCE_MS", patience_ms, 1);
  static unsigned char dst[bytes];
  copy_works(bytes, 1);
  unsigned char* src = memory_that_does_not_arrive(bytes);
  CHILD_CHECK(src != nullptr);
  haul_request request = haul_request_copy(dst, src, bytes);
  request.flags = HAUL_DEDICATED;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  sleep_ms(50);
  return ticket;
}

// A child whose standard error is a pipe, and what came out of it.
class Told {
 public:
  Told() { EXPECT_EQ(pipe(ends_), 0); }
  ~Told() {
    close(ends_[0]);
    if (ends_[1] >= 0) close(ends_[1]);
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  void take_standard_error() const { CHILD_EQUAL(dup2(ends_[1], 2), 2); }
  std::string text() {
    close(ends_[1]);
    ends_[1] = -1;
    std::string all;
    char part[512];
    for (ssize_t got; (got = read(ends_[0], part, sizeof part)) > 0;)
      all.append(part, static_cast<std::size_t>(got));
    return all;
  }

 private:
  int ends_[2];
};

TEST(StuckCopy, ExitLeavesItAndSaysSo) {
  NEEDS_USERFAULTFD();
  Told told;
  EXPECT_EQ(run_child([&told] {
              told.take_standard_error();
              stuck_copy("300");
              exit(5);
              return 0;
            }),
            5);
  const std::string text = told.text();
  EXPECT_NE(text.find("exit() leaves 1 request with 1048576 of 1048576 bytes not copied"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("HAUL_MOVER_PATIENCE_MS"), std::string::npos) << text;
}

TEST(StuckCopy, SoDoesShutdownAndExitDoesNotWaitAgain) {
  NEEDS_USERFAULTFD();
  Told told;
  EXPECT_EQ(run_child([&told] {
              told.take_standard_error();
              const haul_ticket ticket = stuck_copy("300");
              CHILD_EQUAL(haul_shutdown(), 0);
              CHILD_EQUAL(haul_test(ticket), 0);  // nobody says that it is done
              exit(5);
              return 0;
            }),
            5);
  const std::string text = told.text();
  EXPECT_NE(text.find("haul_shutdown() leaves 1 request"), std::string::npos) << text;
  EXPECT_EQ(text.find("exit() leaves"), std::string::npos) << text;
}

TEST(StuckCopy, OfAThreadThatHelps) {
  NEEDS_USERFAULTFD();
  EXPECT_EQ(run_child([] {
              std::thread([] { haul_wait(stuck_copy("300")); }).detach();
              sleep_ms(200);
              exit(5);
              return 0;
            }),
            5);
}

std::uint64_t nanoseconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// What the mover has begun is nobody's to help with, so such a wait ends by its limit alone.
TEST(StuckCopy, AWaitWithALimitEnds) {
  NEEDS_USERFAULTFD();
  if (cpus_allowed() < 2) GTEST_SKIP() << "no mover to begin it";
  EXPECT_EQ(run_child([] {
              const haul_ticket ticket = stuck_copy("300");
              for (const std::uint64_t limit_ns : {0u, 1000u, 30'000'000u}) {
                const std::uint64_t begun = nanoseconds_now();
                CHILD_EQUAL(haul_wait_range_for(ticket, 0, 1, limit_ns), HAUL_ETIMEDOUT);
                CHILD_CHECK(nanoseconds_now() - begun >= limit_ns);
                CHILD_CHECK(std::strstr(haul_last_error(), "range") != nullptr);
              }
              CHILD_EQUAL(haul_wait_range_for(ticket, bytes, 1, 0), 0);  // an empty range
              CHILD_EQUAL(haul_test_range(ticket, 0, 1), 0);
              CHILD_EQUAL(haul_test(ticket), 0);
              _exit(5);
              return 0;
            }),
            5);
}

double cpu_seconds() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// The mover is awake, and the distance to it is measured, before it is stuck: so nothing but the
// requests of the measurement tells.
TEST(StuckCopy, HaulTuneComesBack) {
  NEEDS_USERFAULTFD();
  if (cpus_allowed() < 2) GTEST_SKIP() << "no mover to measure with";
  EXPECT_EQ(run_child([] {
              always_mover();
              for (unsigned turn = 0; turn < 3000 && state_now().round_trip_ns == 0; ++turn) {
                haul_wake();
                copy_works(mib, turn);
                sleep_ms(1);
              }
              stuck_copy("300");
              const double before = cpu_seconds();
              CHILD_EQUAL(haul_tune(nullptr, nullptr), HAUL_EAGAIN);
              CHILD_CHECK(std::strstr(haul_last_error(), "mover") != nullptr);
              CHILD_CHECK(cpu_seconds() - before < 2);
              _exit(5);
              return 0;
            }),
            5);
}

// A signal that comes while exit() or haul_shutdown() waits, which they would for an hour.
void expect_signals_work(bool shut_down, int signal, int status) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = start_child([&] {
    stuck_copy("3600000");
    struct sigaction action {};
    action.sa_handler = [](int) { _exit(9); };
    if (signal == SIGALRM) sigaction(SIGALRM, &action, nullptr);
    CHILD_EQUAL(write(ends[1], "x", 1), 1);
    if (shut_down) haul_shutdown();
    exit(1);
    return 0;
  });
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  sleep_ms(200);
  kill(child, signal);
  EXPECT_EQ(end_of(child, 20), status);
  close(ends[0]);
  close(ends[1]);
}

TEST(StuckCopy, SigtermEndsAProcessThatExits) {
  NEEDS_USERFAULTFD();
  expect_signals_work(false, SIGTERM, 1000 + SIGTERM);
}

TEST(StuckCopy, SigintEndsAProcessThatShutsHaulDown) {
  NEEDS_USERFAULTFD();
  expect_signals_work(true, SIGINT, 1000 + SIGINT);
}

TEST(StuckCopy, AHandlerRunsWhileExitWaits) {
  NEEDS_USERFAULTFD();
  expect_signals_work(false, SIGALRM, 9);
}

// ---- the mover in the hands of a crash handler ----

std::atomic<int> crashed{0};

void park(int) {
  crashed = 1;
  for (;;) pause();
}

void leave(int) {
  exit(6);
}

void crash_the_mover(void (*handler)(int)) {
  always_mover();
  setenv("HAUL_MOVER_PATIENCE_MS", "300", 1);
  signal(SIGSEGV, handler);
  copy_works(bytes, 1);
  static unsigned char dst[bytes];
  void* bad = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  haul_request request = haul_request_copy(dst, bad, bytes);
  request.flags = HAUL_DEDICATED;
  CHILD_EQUAL(haul_submit(&request, 1, nullptr), 1);
}

TEST(CrashHandler, ThatParksTheMoverDoesNotKeepTheProcess) {
  EXPECT_EQ(run_child([] {
              crash_the_mover(park);
              while (crashed == 0) sleep_ms(1);
              exit(5);
              return 0;
            }),
            5);
}

TEST(CrashHandler, ThatParksTheMoverDoesNotKeepShutdown) {
  EXPECT_EQ(run_child([] {
              crash_the_mover(park);
              while (crashed == 0) sleep_ms(1);
              CHILD_EQUAL(haul_shutdown(), 0);
              return 0;
            }),
            0);
}

TEST(CrashHandler, ThatExitsOnTheMoversThreadEndsTheProcess) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer refuses exit() in a signal handler";
  EXPECT_EQ(run_child([] {
              crash_the_mover(leave);
              sleep_ms(60'000);
              return 0;
            }),
            6);
}

}  // namespace
