// A machine that is busy when haul first measures it: such figures are neither believed nor kept,
// and it is measured again later. (Kept for good, they once had copies handed over that the caller
// makes in two thirds of the time.)
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <string>

#include "e2e/support.hpp"

namespace {

using namespace e2e;

std::atomic<bool> enough{false};

void* spin(void* /*unused*/) {
  while (!enough.load(std::memory_order_relaxed)) {
  }
  return nullptr;
}

// Four threads a CPU that never rest.
void make_busy() {
  for (unsigned i = 0; i < 4 * cpus_allowed(); ++i) {
    pthread_t thread;
    CHILD_EQUAL(pthread_create(&thread, nullptr, spin, nullptr), 0);
    pthread_detach(thread);
  }
}

std::string contents(const std::string& path) {
  std::string text;
  char part[4096];
  const int fd = open(path.c_str(), O_RDONLY);
  for (ssize_t bytes; fd >= 0 && (bytes = read(fd, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(bytes));
  if (fd >= 0) close(fd);
  return text;
}

class BusyMachine : public testing::Test {
 protected:
  BusyMachine() {
    const bool made = mkdtemp(directory_.data()) != nullptr;
    EXPECT_TRUE(made);
    figures_ = directory_ + "/figures";
    said_ = directory_ + "/said";
  }
  ~BusyMachine() override {
    unlink(figures_.c_str());
    unlink(said_.c_str());
    rmdir(directory_.c_str());
  }

  void busy_environment() const {
    setenv("HAUL_MOVER_LEASE", "off", 1);
    setenv("HAUL_SERVICE_USE", "off", 1);
    setenv("HAUL_TUNE_BACKGROUND", "on", 1);
    setenv("HAUL_LOG_LEVEL", "info", 1);
    setenv("HAUL_TUNE_CACHE", figures_.c_str(), 1);
    dup2(open(said_.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), STDERR_FILENO);
    make_busy();
  }

  std::string directory_ = testing::TempDir() + "haul-busy-XXXXXX", figures_, said_;
};

TEST_F(BusyMachine, FiguresOfABusyMachineAreNotKept) {
  if (cpus_allowed() < 2) GTEST_SKIP() << "no mover to measure with";
  EXPECT_EQ(run_child(
                [this] {
                  busy_environment();
                  for (unsigned turn = 0; turn < 600; ++turn) {
                    haul_wake();
                    copy_works(mib, turn);
                    sleep_ms(100);
                    if (contents(said_).find("not measured") != std::string::npos) return 0;
                  }
                  return 1;
                },
                100),
            0)
      << contents(said_);
  EXPECT_NE(contents(said_).find("again in 10 s"), std::string::npos) << contents(said_);
  EXPECT_EQ(contents(figures_), "");
}

TEST_F(BusyMachine, HaulTuneSaysSo) {
  if (cpus_allowed() < 2) GTEST_SKIP() << "no mover to measure with";
  EXPECT_EQ(run_child(
                [this] {
                  setenv("HAUL_TUNE_BACKGROUND", "off", 1);
                  busy_environment();
                  CHILD_EQUAL(haul_tune(nullptr, nullptr), HAUL_EAGAIN);
                  CHILD_CHECK(std::strstr(haul_last_error(), "busy") != nullptr);
                  return 0;
                },
                100),
            0)
      << contents(said_);
  EXPECT_EQ(contents(figures_), "");
}

}  // namespace
