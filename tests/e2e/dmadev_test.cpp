// The engine `dmadev` on DPDK's own stand-in for a device, a thread of DPDK's: the bytes are right,
// by a mover and by the caller, and the program finds nothing changed but the time. Skipped where
// haul was built without DPDK.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <string>
#include <thread>

#include "support.hpp"

namespace {

using namespace e2e;

haul_engine_info dmadev() {
  return engine_now("dmadev");
}

// Waits until it is open, or has been refused.
haul_engine_info opened(const char* mover, const char* options) {
  return open_engine("dmadev", mover, "HAUL_ENGINE_DMADEV", options);
}

// False: haul was built without it. (One that is there and does not open is a failure.)
bool opens(const char* mover) {
  const haul_engine_info info = opened(mover, "dma_skeleton0");
  if (std::strstr(info.status, "cannot be loaded") != nullptr) return false;
  if (info.available == 0) std::fprintf(stderr, "dmadev: %s\n", info.status);
  CHILD_EQUAL(info.available, 1);
  return true;
}

class Dmadev : public testing::TestWithParam<const char*> {
 protected:
  template <class Body>
  void in_child(Body body) {
    const int status = run_child([&] {
      if (!opens(GetParam())) return skip_status;
      body();
      return 0;
    });
    if (status == skip_status) GTEST_SKIP() << "haul was built without DPDK";
    EXPECT_EQ(status, 0);
  }
};
INSTANTIATE_TEST_SUITE_P(By, Dmadev, testing::Values("thread", "caller"));

TEST_P(Dmadev, CopiesWhateverItIsGiven) {
  in_child([] {
    const std::uint64_t before = dmadev().bytes;
    std::uint64_t asked = 0, random = 88172645463325252;
    for (unsigned turn = 0; turn < 200; ++turn) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      const std::size_t length = 1 + random % (turn % 10 == 0 ? 6 * mib : 100 * kib);
      const std::size_t shift = random >> 40 & 63;
      const Buffer from(length + 64), to(length + 64);
      from.fill(turn);
      const haul_request request =
          haul_request_copy(to.data() + shift, from.data() + (random >> 50 & 63), length);
      haul_ticket ticket{};
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      ends_without_help(ticket);
      CHILD_EQUAL(std::memcmp(to.data() + shift, from.data() + (random >> 50 & 63), length), 0);
      for (std::size_t at = 0; at < shift; ++at) CHILD_EQUAL(to[at], 0);
      for (std::size_t at = shift + length; at < to.size(); ++at) CHILD_EQUAL(to[at], 0);
      asked += length;
    }
    CHILD_CHECK(dmadev().bytes - before > asked / 2);
  });
}

TEST_P(Dmadev, FillsAreTheCpus) {
  in_child([] {
    const Buffer to(3 * mib + 1);
    const haul_request request = haul_request_fill(to.data(), 0x5a, 1, to.size());
    haul_ticket ticket{};
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
    CHILD_EQUAL(haul_wait(ticket), 0);
    for (std::size_t at = 0; at < to.size(); ++at) CHILD_EQUAL(to[at], 0x5a);
  });
}

TEST_P(Dmadev, AChildOfForkDoesWithout) {
  if (thread_sanitizer) GTEST_SKIP() << "ThreadSanitizer does not survive a fork of threads";
  in_child([] {
    const auto copy_works = [] {
      const Buffer from(mib), to(mib);
      from.fill(3);
      const haul_request request = haul_request_copy(to.data(), from.data(), mib);
      haul_ticket ticket{};
      CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
      CHILD_EQUAL(haul_wait(ticket), 0);
      CHILD_EQUAL(std::memcmp(to.data(), from.data(), mib), 0);
      return 0;
    };
    const pid_t child = start_child([&] {
      for (int turn = 0; turn < 3; ++turn) copy_works();
      CHILD_EQUAL(dmadev().available, 0);
      return 0;
    });
    for (int turn = 0; turn < 3; ++turn) copy_works();
    CHILD_EQUAL(end_of(child), 0);
    copy_works();
    CHILD_EQUAL(dmadev().available, 1);
  });
}

// DPDK pins the thread that starts it, and makes threads.
TEST_P(Dmadev, TheProgramsThreadsStayAsTheyWere) {
  in_child([] {
    cpu_set_t here, online;
    CPU_ZERO(&here);
    CHILD_EQUAL(sched_getaffinity(0, sizeof here, &here), 0);
    std::thread([&] { sched_getaffinity(0, sizeof online, &online); }).join();
    CHILD_CHECK(CPU_EQUAL(&here, &online));
    sigset_t blocked;
    CHILD_EQUAL(sigprocmask(SIG_BLOCK, nullptr, &blocked), 0);
    CHILD_EQUAL(sigismember(&blocked, SIGUSR1), 0);
    // Signals are the program's own thread's: all others block them.
    unsigned others = 0;
    DIR* const tasks = opendir("/proc/self/task");
    while (const dirent* entry = readdir(tasks)) {
      const std::string name = entry->d_name;
      if (name[0] == '.' || name == std::to_string(getpid())) continue;
      std::ifstream status("/proc/self/task/" + name + "/status");
      for (std::string word; status >> word;) {
        if (word != "SigBlk:") continue;
        status >> word;
        CHILD_CHECK((std::stoull(word, nullptr, 16) >> (SIGUSR1 - 1) & 1) != 0);
        ++others;
      }
    }
    closedir(tasks);
    CHILD_CHECK(others >= 1);
  });
}

TEST(NoDmadev, IsSaidAndTheCpuCopies) {
  for (const char* options : {"", "no_such_driver0", "0000:ff:1f.7", "not:an:address"}) {
    EXPECT_EQ(run_child([options] {
                const haul_engine_info info = opened("thread", options);
                CHILD_EQUAL(info.available, 0);
                CHILD_CHECK(std::strlen(info.status) > 20);
                CHILD_CHECK(std::strstr(info.status, "opened") == nullptr);
                return 0;
              }),
              0)
        << options;
  }
}

}  // namespace
