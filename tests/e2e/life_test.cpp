// Threads that end, processes that exit: what was in flight is finished, and what was theirs is
// used again.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support.hpp"

namespace {

using namespace e2e;

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

// Context switches so far of this process's mover threads, of both kinds; -1 without one.
long switches_of_movers() {
  long sum = -1;
  DIR* tasks = opendir("/proc/self/task");
  CHILD_CHECK(tasks != nullptr);
  while (const dirent* task = readdir(tasks)) {
    char path[300], line[256];
    std::snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
    std::FILE* file = task->d_name[0] == '.' ? nullptr : std::fopen(path, "r");
    if (file == nullptr) continue;
    bool mover = false;
    while (std::fgets(line, sizeof line, file) != nullptr) {
      long count = 0;
      if (std::strcmp(line, "Name:\thaul-mover\n") == 0) {
        mover = true;
        if (sum < 0) sum = 0;
      }
      if (mover && (std::sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1 ||
                    std::sscanf(line, "nonvoluntary_ctxt_switches: %ld", &count) == 1)) {
        sum += count;
      }
    }
    std::fclose(file);
  }
  closedir(tasks);
  return sum;
}

TEST(Life, AThousandThreadsInTurnEndWithCopiesInFlight) {
  EXPECT_EQ(run_child([] {
              always_mover();
              const Buffer src(256 * kib), dst(256 * kib);
              src.fill(1);
              std::vector<haul_ticket> tickets;
              for (int i = 0; i < (sanitizer ? 200 : 1000); ++i) {
                dst.clear();
                haul_ticket ticket{};
                std::thread([&] {
                  haul_request request = haul_request_copy(dst.data(), src.data(), src.size());
                  request.flags =
                      HAUL_DEDICATED | (i % 4 == 0 ? HAUL_COMPLETE : 0);  // which nobody reaps
                  CHILD_EQUAL(haul_submit(&request, 1, &ticket), 1);
                }).join();
                tickets.push_back(ticket);
                if (i % 2 == 0) {
                  while (haul_test(ticket) == 0) sched_yield();
                }
                CHILD_EQUAL(haul_wait(ticket), 0);
                CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
              }
              // Rings were adopted, and tickets of dead threads still answer.
              CHILD_CHECK(state_now().threads <= 4);
              for (const haul_ticket& ticket : tickets) CHILD_EQUAL(haul_test(ticket), 1);
              haul_completion entry;
              CHILD_EQUAL(haul_reap(&entry, 1), 0);  // nobody else's completions
              return 0;
            }),
            0);
}

TEST(Life, AnAdoptedRingHasAnEmptyQueueAndNoEvents) {
  EXPECT_EQ(run_child([] {
              always_mover();
              static unsigned char src[4096], dst[4096];
              for (int i = 0; i < 50; ++i) {
                std::thread([] {
                  haul_completion entry;
                  CHILD_EQUAL(haul_reap(&entry, 1), 0);
                  const int fd = haul_reap_eventfd();
                  CHILD_CHECK(fd >= 0);
                  std::uint64_t count = 0;
                  CHILD_EQUAL(read(fd, &count, sizeof count), -1);
                  CHILD_EQUAL(haul_reap_arm(), 0);
                  for (int k = 0; k < 300; ++k) {
                    haul_request request = haul_request_copy(dst, src, sizeof dst);
                    request.flags = HAUL_DEDICATED | HAUL_COMPLETE | HAUL_FENCE;
                    CHILD_EQUAL(haul_submit(&request, 1, nullptr), 1);
                  }
                  CHILD_EQUAL(haul_drain(), 0);
                }).join();
              }
              CHILD_CHECK(open_descriptors() < 30);
              return 0;
            }),
            0);
}

TEST(Life, ExitFinishesCopiesIntoASharedFile) {
  for (int round = 0; round < 8; ++round) {
    constexpr std::size_t bytes = 32 * mib;
    const int fd = memfd_create("e2e", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, bytes), 0);
    ASSERT_EQ(run_child([fd] {
                always_mover();
                const Buffer src(bytes);
                std::memset(src.data(), 0x77, bytes);
                auto* file = static_cast<unsigned char*>(
                    mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
                for (std::size_t at = 0; at < bytes; at += mib)
                  haul_copy(file + at, src.data() + at, mib);
                std::exit(0);
                return 0;
              }),
              0);
    auto* file = static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0));
    for (std::size_t at = 0; at < bytes; ++at) ASSERT_EQ(file[at], 0x77) << at;
    munmap(file, bytes);
    close(fd);
  }
}

TEST(Life, ExitWhileOtherThreadsCopy) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_EQ(run_child(
                  [] {
                    always_mover();
                    static std::atomic<unsigned> rounds{0};
                    for (int t = 0; t < 3; ++t) {
                      std::thread([] {
                        const Buffer src(512 * kib), dst(512 * kib);
                        for (;; ++rounds) {
                          const haul_ticket ticket = haul_copy(dst.data(), src.data(), src.size());
                          while (haul_test(ticket) == 0) sched_yield();
                          if (haul_wait(ticket) != 0) return;
                        }
                      }).detach();
                    }
                    while (rounds < 20) sched_yield();
                    std::exit(0);
                    return 0;
                  },
                  20),
              0);
  }
}

TEST(Life, ExitHandlersMayCopy) {
  EXPECT_EQ(run_child([] {
              always_mover();
              static unsigned char src[512 * kib], dst[512 * kib];
              std::memset(src, 1, sizeof src);
              std::atexit([] {  // runs after haul's own
                if (haul_wait(haul_copy(dst, src, sizeof dst)) != 0 ||
                    std::memcmp(dst, src, sizeof src) != 0)
                  _exit(3);
              });
              copy_works(mib, 1);
              std::exit(0);
              return 0;
            }),
            0);
}

struct CopiesInItsDestructor {
  unsigned char src[256 * kib], dst[256 * kib];
  ~CopiesInItsDestructor() {
    std::memset(src, 5, sizeof src);
    const int result = haul_wait(haul_copy(dst, src, sizeof dst));
    if (result != 0 || std::memcmp(dst, src, sizeof dst) != 0) _exit(4);
  }
};

TEST(Life, ThreadLocalDestructorsMayCopy) {
  EXPECT_EQ(run_child([] {
              always_mover();
              for (int i = 0; i < 50; ++i) {
                std::thread([] {
                  static thread_local CopiesInItsDestructor object;
                  object.src[0] = 1;
                  copy_works(64 * kib, 1);
                }).join();
              }
              CHILD_CHECK(state_now().threads <= 4);
              return 0;
            }),
            0);
}

TEST(Life, AnIdleMoverSleepsForGood) {
  EXPECT_EQ(run_child([] {
              quiet_environment();
              setenv("HAUL_MOVER_LEASE", "off", 1);
              copy_works(mib, 1);
              CHILD_CHECK(wake_and_see());
              copy_works(8 * mib, 2);
              sleep_ms(200);
              CHILD_EQUAL(state_now().mover_state, 2);
              const long before = switches_of_movers();
              CHILD_CHECK(before > 0);
              sleep_ms(1000);
              CHILD_EQUAL(switches_of_movers(), before);
              CHILD_EQUAL(state_now().mover_cpu, -1);
              // And it wakes again.
              CHILD_CHECK(wake_and_see());
              copy_works(8 * mib, 3);
              return 0;
            }),
            0);
}

}  // namespace
