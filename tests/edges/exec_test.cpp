// exec with copies in flight, from main and from another thread: the new program begins clean, with
// haul's descriptors closed, its threads gone and the core free.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

// This program again, as a new one: only the test of that name.
const char* again(const char* filter) {
  static std::string argument;
  argument = std::string("--gtest_filter=") + filter;
  return argument.c_str();
}
bool executed() {
  return std::getenv("HAUL_EDGES_EXECUTED") != nullptr;
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}
// What the process has open before haul's first call, it may have after exec.
void start_haul() {
  setenv("HAUL_EDGES_EXECUTED", std::to_string(open_descriptors()).c_str(), 1);
  always_mover();
  haul_wake();
}

// In the new program: no descriptor of haul's, no signal blocked; copies as ever.
void expect_a_clean_process() {
  EXPECT_LE(open_descriptors(), std::atoi(std::getenv("HAUL_EDGES_EXECUTED")));
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
  EXPECT_EQ(run_child([] {
              copy_works(mib, 1);
              copy_works(8 * mib, 2);
              return 0;
            }),
            0);
}

void fill_flight(const Buffer& dst, const Buffer& src) {
  for (std::size_t at = 0; at < dst.size(); at += mib)
    haul_copy(dst.data() + at, src.data() + at, mib);
}

TEST(Exec, AmidCopies) {
  if (executed()) return expect_a_clean_process();
  EXPECT_EQ(run_child([] {
              start_haul();
              const Buffer src(32 * mib), dst(32 * mib);
              fill_flight(dst, src);
              execl("/proc/self/exe", "exec", again("Exec.AmidCopies"), nullptr);
              return 1;
            }),
            0);
}

TEST(Exec, FromAnotherThreadWhileMainWaits) {
  if (executed()) return expect_a_clean_process();
  if (thread_sanitizer) GTEST_SKIP() << "its threads do not take part in an exec of another thread";
  EXPECT_EQ(run_child([] {
              start_haul();
              const Buffer src(64 * mib), dst(64 * mib);
              const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
              std::thread([] {
                execl("/proc/self/exe", "exec", again("Exec.FromAnotherThreadWhileMainWaits"),
                      nullptr);
                _exit(1);
              }).detach();
              haul_wait(ticket);
              for (;;) pause();
              return 1;
            }),
            0);
}

TEST(Exec, ThatFailsChangesNothing) {
  EXPECT_EQ(run_child([] {
              start_haul();
              const Buffer src(8 * mib), dst(8 * mib);
              src.fill(3);
              fill_flight(dst, src);
              CHILD_EQUAL(execl("/nonexistent", "none", nullptr), -1);
              CHILD_EQUAL(haul_drain(), 0);
              CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
              copy_works(mib, 4);
              return 0;
            }),
            0);
}

}  // namespace
