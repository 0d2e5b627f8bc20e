#include "tune/files.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/knobs.hpp"
#include "base/sanitizer.hpp"
#include "tune/calibration_file.hpp"
#include "unit/base/temp_dir.hpp"

namespace haul::tune {
namespace {

constexpr std::uint64_t patience_ns = 20'000'000'000;

class Files : public testing::Test {
 protected:
  Files() {
    setenv("HAUL_TUNE_CACHE", (dir_ / "file").c_str(), 1);
    reread_knobs();
  }
  ~Files() override {
    unsetenv("HAUL_TUNE_CACHE");
    reread_knobs();
  }
  static Measured figures() {
    Measured measured;
    measured.quality = Quality{1795452138, 1, 0, 0};
    measured.figures.measured = true;
    measured.figures.wake_ns = 4321;
    return measured;
  }
  test::TempDir dir_;
};

TEST_F(Files, WhatIsStoredIsLoaded) {
  const auto missing = load_patiently(patience_ns);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().sys_errno, ENOENT);
  EXPECT_EQ(store_patiently(figures(), patience_ns).code, Code::ok);
  const auto stored = load_patiently(patience_ns);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->figures.wake_ns, 4321);
  EXPECT_FALSE(files_stall());
}

TEST_F(Files, AskersTakeTurns) {
  ASSERT_EQ(store_patiently(figures(), patience_ns).code, Code::ok);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int turn = 0; turn < 10; ++turn) EXPECT_TRUE(load_patiently(patience_ns));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Without patience it may not have answered yet; the place becomes free all the same.
TEST_F(Files, WhoHasNoPatienceGoes) {
  ASSERT_EQ(store_patiently(figures(), patience_ns).code, Code::ok);
  for (int turn = 0; turn < 20; ++turn) {
    const auto stored = load_patiently(0);
    EXPECT_TRUE(stored || stored.error().code == Code::timed_out);
  }
  for (int turn = 0; turn < 2000 && files_stall(); ++turn) usleep(10'000);
  EXPECT_TRUE(load_patiently(patience_ns));
}

TEST_F(Files, TheCpusTimesAreRead) {
  EXPECT_GT(cpu_times_patiently(patience_ns).all, 0u);
}

TEST_F(Files, AChildBeginsAnew) {
  if (accesses_are_checked) GTEST_SKIP() << "a sanitizer does not survive a fork amid its malloc";
  ASSERT_EQ(store_patiently(figures(), patience_ns).code, Code::ok);
  (void)load_patiently(0);  // under way, perhaps
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(!files_stall() && load_patiently(patience_ns) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace haul::tune
