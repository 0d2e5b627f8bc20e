// Places where little is to be had: one core, no threads, refused system calls, little address
// space, no home, a broken cache. Everywhere copies work, and haul_query() says in words what is
// missing.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <string>
#include <thread>
#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;

// Copies of all kinds, by all roads.
void everything_works() {
  for (const std::size_t bytes : {std::size_t{1}, 4 * kib, 64 * kib, mib, 8 * mib})
    copy_works(bytes, bytes);
  const Buffer src(mib), dst(mib);
  src.fill(3);
  haul_request request = haul_request_copy(dst.data(), src.data(), mib);
  request.flags = HAUL_DEDICATED | HAUL_FENCE | HAUL_COMPLETE;
  haul_ticket ticket{};
  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
  CHILD_EQUAL(haul_wait(ticket), 0);
  CHILD_EQUAL(std::memcmp(dst.data(), src.data(), mib), 0);
  haul_completion entry;
  CHILD_EQUAL(haul_reap(&entry, 1), 1);
  CHILD_EQUAL(haul_drain(), 0);
}

// A child's end; 77 where the kernel refuses filters.
#define EXPECT_GOOD_OR_SKIP(...)                                               \
  do {                                                                         \
    const int end = (__VA_ARGS__);                                             \
    if (end == skip_status) GTEST_SKIP() << "system call filters are refused"; \
    EXPECT_EQ(end, 0);                                                         \
  } while (false)

void says_why() {
  CHILD_CHECK(std::strlen(state_now().mover_status) > 20);
}

TEST(Hostile, OneCore) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              cpu_set_t one, mask;
              CPU_ZERO(&one);
              sched_getaffinity(0, sizeof mask, &mask);
              for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
                if (CPU_ISSET(cpu, &mask)) {
                  CPU_SET(cpu, &one);
                  break;
                }
              }
              CHILD_EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
              everything_works();
              CHILD_EQUAL(haul_wake(), HAUL_ENOTSUP);
              CHILD_EQUAL(state_now().mover_state, 4);
              says_why();
              everything_works();
              return 0;
            }),
            0);
}

// Pinned to one core after the mover was made: both share it, and still every wait ends.
TEST(Hostile, OneCoreFromNowOn) {
  EXPECT_EQ(run_child([] {
              always_mover();
              CHILD_CHECK(wake_and_see());
              cpu_set_t one;
              CPU_ZERO(&one);
              CPU_SET(static_cast<unsigned>(state_now().mover_cpu >= 0 ? state_now().mover_cpu : 0),
                      &one);
              sched_setaffinity(0, sizeof one, &one);
              everything_works();
              return 0;
            }),
            0);
}

TEST(Hostile, NoCoresByKnob) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              setenv("HAUL_MOVER_CORES", "0", 1);
              everything_works();
              CHILD_EQUAL(haul_wake(), HAUL_ENOTSUP);
              says_why();
              return 0;
            }),
            0);
}

TEST(Hostile, NoThreadUnderALimitOfProcesses) {
  EXPECT_EQ(run_child([] {
              always_mover();
              if (geteuid() == 0) {
                CHILD_EQUAL(setgroups(0, nullptr), 0);
                CHILD_EQUAL(setresgid(65534, 65534, 65534), 0);
                CHILD_EQUAL(setresuid(65534, 65534, 65534), 0);
              }
              const rlimit none{1, 1};
              CHILD_EQUAL(setrlimit(RLIMIT_NPROC, &none), 0);
              everything_works();
              CHILD_EQUAL(haul_wake(), HAUL_ENOMEM);
              CHILD_EQUAL(state_now().mover_state, 4);
              says_why();
              everything_works();
              return 0;
            }),
            0);
}

TEST(Hostile, NoThreadUnderASystemCallFilter) {
  EXPECT_GOOD_OR_SKIP(run_child([] {
    always_mover();
    if (!refuse_system_calls({SYS_clone, SYS_clone3}, EPERM)) return skip_status;
    everything_works();
    CHILD_EQUAL(haul_wake(), HAUL_ENOMEM);
    says_why();
    everything_works();
    return 0;
  }));
}

TEST(Hostile, MembarrierRefused) {
  EXPECT_GOOD_OR_SKIP(run_child([] {
    always_mover();
    setenv("HAUL_MOVER_SPIN_US", "0", 1);
    if (!refuse_system_calls({SYS_membarrier}, ENOSYS)) return skip_status;
    everything_works();
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        const Buffer src(128 * kib), dst(128 * kib);
        src.fill(t);
        for (int i = 0; i < 300; ++i) {
          dst.clear();
          const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
          // A lost wake-up of the mover shows where nobody helps.
          while (t % 2 == 0 && haul_test(ticket) == 0) sched_yield();
          CHILD_EQUAL(haul_wait(ticket), 0);
          CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
          if (i % 16 == 0) sleep_ms(2);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (!thread_sanitizer)
      CHILD_EQUAL(run_child([] {
                    everything_works();
                    return 0;
                  }),
                  0);
    CHILD_EQUAL(haul_shutdown(), 0);
    return 0;
  }));
}

TEST(Hostile, ProcessVmReadvRefused) {
  for (const int error : {EPERM, ENOSYS}) {
    EXPECT_GOOD_OR_SKIP(run_child([error] {
      always_mover();
      if (!refuse_system_calls({SYS_process_vm_readv, SYS_process_vm_writev}, error))
        return skip_status;
      everything_works();
      haul_space space = 0;
      CHILD_CHECK(haul_space_open(getppid(), &space) < 0);
      const Buffer src(4096), dst(4096);
      haul_request request = haul_request_copy(dst.data(), src.data(), 4096);
      request.flags = HAUL_CHECKED;
      CHILD_EQUAL(haul_submit(&request, 1, nullptr), HAUL_ENOTSUP);
      CHILD_CHECK(std::strlen(haul_last_error()) > 20);
      haul_engine_info info{};
      bool told = false;
      for (unsigned i = 0;; ++i) {
        info.size = sizeof info;
        if (haul_engine(i, &info) != 0) break;
        if (std::strcmp(info.name, "cma") == 0)
          told = info.available == 0 && std::strlen(info.status) > 20;
      }
      CHILD_CHECK(told);
      everything_works();
      return 0;
    }));
  }
}

TEST(Hostile, SocketsAndEventDescriptorsRefused) {
  EXPECT_GOOD_OR_SKIP(run_child([] {
    quiet_environment();
    setenv("HAUL_PLAN_MOVER", "thread", 1);
    if (!refuse_system_calls({SYS_socket, SYS_eventfd, SYS_eventfd2, SYS_bind}, EPERM))
      return skip_status;
    everything_works();
    haul_wake();
    everything_works();
    CHILD_CHECK(haul_reap_eventfd() < 0);
    CHILD_EQUAL(haul_reap_arm(), 0);
    everything_works();
    says_why();
    sleep_ms(150);
    everything_works();
    // No other process has anything to do with it.
    CHILD_CHECK(std::strstr(state_now().mover_status, "nother process") == nullptr);
    return 0;
  }));
}

TEST(Hostile, FilesAndPinningRefused) {
  EXPECT_GOOD_OR_SKIP(run_child([] {
    always_mover();
    setenv("HAUL_TUNE_BACKGROUND", "on", 1);  // it reads and writes files
    if (!refuse_system_calls({SYS_openat, SYS_open, SYS_sched_setaffinity}, EPERM))
      return skip_status;
    everything_works();
    haul_wake();
    everything_works();
    return 0;
  }));
}

// Without MADV_WIPEONFORK there can be no rings, so there is no completion queue either; copies
// need none.
TEST(Hostile, NoRingsToBeHad) {
  EXPECT_GOOD_OR_SKIP(run_child([] {
    always_mover();
    if (!refuse_system_calls({SYS_madvise}, EINVAL)) return skip_status;
    copy_works(8 * mib, 1);
    const Buffer src(mib), dst(mib);
    src.fill(3);
    haul_request request = haul_request_copy(dst.data(), src.data(), mib);
    request.flags = HAUL_FENCE | HAUL_NONBLOCK | HAUL_DEDICATED;
    haul_ticket ticket{};
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
    CHILD_EQUAL(haul_wait(ticket), 0);
    CHILD_EQUAL(std::memcmp(dst.data(), src.data(), mib), 0);
    request.flags = HAUL_COMPLETE;
    CHILD_EQUAL(haul_submit(&request, 1, &ticket), HAUL_ENOMEM);
    CHILD_EQUAL(haul_wake(), HAUL_ENOMEM);
    CHILD_EQUAL(haul_drain(), 0);
    if (!thread_sanitizer)
      CHILD_EQUAL(run_child([] {
                    copy_works(mib, 2);
                    return 0;
                  }),
                  0);
    CHILD_EQUAL(haul_shutdown(), 0);
    return 0;
  }));
}

TEST(Hostile, LittleAddressSpace) {
  if (sanitizer) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  for (const std::size_t more : {2 * mib, 24 * mib, 64 * mib, 200 * mib}) {
    EXPECT_EQ(run_child([more] {
                always_mover();
                long pages = 0;
                if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
                  CHILD_EQUAL(std::fscanf(file, "%ld", &pages), 1);
                  std::fclose(file);
                }
                static unsigned char src[mib], dst[mib];
                const rlimit limit{static_cast<rlim_t>(pages) * 4096 + more, RLIM_INFINITY};
                CHILD_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
                for (int round = 1; round <= 20; ++round) {
                  std::memset(src, round, sizeof src);
                  CHILD_EQUAL(haul_wait(haul_copy(dst, src, sizeof src)), 0);
                  CHILD_EQUAL(std::memcmp(dst, src, sizeof src), 0);
                  haul_request request = haul_request_fill(dst, 0, 8, sizeof dst);
                  haul_ticket ticket{};
                  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
                  CHILD_EQUAL(haul_wait(ticket), 0);
                  CHILD_EQUAL(dst[mib - 1], 0);
                  request.flags = HAUL_NONBLOCK | HAUL_DEDICATED;
                  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);  // never EAGAIN for ever
                  CHILD_EQUAL(haul_wait(ticket), 0);
                }
                return 0;
              }),
              0)
        << more;
  }
}

// Where the calibration file is not to be had or not to be understood: the safe figures, and no
// word on standard error.
int calibrated_with(const char* cache, const char* home, const char* contents) {
  return run_child([&] {
    setenv("HAUL_MOVER_LEASE", "off", 1);
    unsetenv("HAUL_TUNE_CACHE");
    unsetenv("XDG_CACHE_HOME");
    if (home != nullptr)
      setenv("HOME", home, 1);
    else
      unsetenv("HOME");
    if (cache != nullptr) setenv("HAUL_TUNE_CACHE", cache, 1);
    if (contents != nullptr) {
      const int fd = open(cache, O_CREAT | O_TRUNC | O_WRONLY, 0600);
      const auto length = static_cast<ssize_t>(std::strlen(contents));
      CHILD_CHECK(fd >= 0 && write(fd, contents, static_cast<std::size_t>(length)) == length);
      close(fd);
    }
    int pipes[2];
    CHILD_EQUAL(pipe2(pipes, O_NONBLOCK), 0);
    const int saved = dup(2);
    dup2(pipes[1], 2);
    everything_works();
    haul_wake();
    everything_works();
    sleep_ms(300);
    everything_works();
    dup2(saved, 2);
    char said[512] = {};
    const ssize_t bytes = read(pipes[0], said, sizeof said - 1);
    if (bytes > 0) std::fprintf(stderr, "standard error has: %s\n", said);
    CHILD_CHECK(bytes <= 0 ||
                contents != nullptr);  // a broken file of the user's may be worth a line
    return 0;
  });
}

TEST(Hostile, NoHomeNoCacheBrokenCache) {
  std::string directory = testing::TempDir() + "haul-e2e-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string file = directory + "/figures";
  EXPECT_EQ(calibrated_with(nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(calibrated_with(nullptr, "/proc/nonexistent", nullptr), 0);
  EXPECT_EQ(calibrated_with("/proc/nowhere/figures.json", "/proc/nonexistent", nullptr), 0);
  EXPECT_EQ(calibrated_with(directory.c_str(), "/proc/nonexistent", nullptr),
            0);  // a directory in its place
  for (const char* contents :
       {"", "{", "{\"version\": 99999999999999999999}", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "{\"host\": {\"hot_line_ns\": nan, \"cold_line_ns\": -1e308}}",
        "hot_line_ns=-5\ncold_line_ns=inf\nround_trip_ns=1e999\n"}) {
    EXPECT_EQ(calibrated_with(file.c_str(), "/proc/nonexistent", contents), 0) << contents;
  }
  const std::string cleanup = "rm -rf " + directory;
  EXPECT_EQ(std::system(cleanup.c_str()), 0);
}

// HAUL_TUNE_CACHE=/dev/null must not cost root the device.
TEST(Hostile, ACacheThatIsNoFileIsLeftAlone) {
  std::string directory = testing::TempDir() + "haul-e2e-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string fifo = directory + "/null";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(run_child([&] {
              setenv("HAUL_MOVER_LEASE", "off", 1);
              setenv("HAUL_TUNE_BACKGROUND", "off", 1);
              setenv("HAUL_TUNE_CACHE", fifo.c_str(), 1);
              if (cpus_allowed() > 1) CHILD_CHECK(haul_tune(nullptr, nullptr) < 0);
              return 0;
            }),
            0);
  struct stat seen {};
  EXPECT_EQ(lstat(fifo.c_str(), &seen), 0);
  EXPECT_TRUE(S_ISFIFO(seen.st_mode));
  const std::string cleanup = "rm -rf " + directory;
  EXPECT_EQ(std::system(cleanup.c_str()), 0);
}

}  // namespace
