// haul_alloc() and haul_free(): memory as any for copies; what is freed is gone; limits give an
// error and never a signal; children share what they inherit.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <string>
#include <thread>
#include <vector>

#include "load.hpp"
#include "support.hpp"

namespace {

using namespace e2e;

unsigned char* alloc(std::size_t bytes) {
  void* at = haul_alloc(bytes);
  CHILD_CHECK(at != nullptr);
  return static_cast<unsigned char*>(at);
}

void fill(unsigned char* at, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = Buffer::expected(seed, i);
}

bool holds(const unsigned char* at, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] != Buffer::expected(seed, i)) return false;
  }
  return true;
}

void limit(__rlimit_resource resource, rlim_t value) {
  rlimit limits{};
  CHILD_EQUAL(getrlimit(resource, &limits), 0);
  limits.rlim_cur = value;
  CHILD_EQUAL(setrlimit(resource, &limits), 0);
}

// Bytes in memory of the arena, as the kernel counts them; 0 without an arena.
std::size_t arena_resident() {
  std::size_t bytes = 0;
  DIR* descriptors = opendir("/proc/self/fd");
  CHILD_CHECK(descriptors != nullptr);
  while (const dirent* entry = readdir(descriptors)) {
    const std::string path = std::string("/proc/self/fd/") + entry->d_name;
    char target[256] = {};
    struct stat status {};
    if (readlink(path.c_str(), target, sizeof target - 1) > 0 &&
        std::strstr(target, "haul-arena") != nullptr && stat(path.c_str(), &status) == 0) {
      bytes += static_cast<std::size_t>(status.st_blocks) * 512;
    }
  }
  closedir(descriptors);
  return bytes;
}

TEST(Alloc, CopiesOfManySizes) {
  for (const char* mover : {"thread", "caller"}) {
    EXPECT_EQ(run_child([mover] {
                always_mover();
                setenv("HAUL_PLAN_MOVER", mover, 1);
                for (const std::size_t bytes :
                     {std::size_t{1}, std::size_t{63}, std::size_t{4096}, std::size_t{4097},
                      65 * kib + 3, mib, 5 * mib + 1, 70 * mib}) {
                  unsigned char* src = alloc(bytes);
                  unsigned char* dst = alloc(bytes);
                  CHILD_EQUAL(reinterpret_cast<std::uintptr_t>(src) % 4096, 0);
                  fill(src, bytes, bytes);
                  CHILD_EQUAL(haul_wait(haul_copy(dst, src, bytes)), 0);
                  CHILD_CHECK(holds(dst, bytes, bytes));
                  // To and from memory of the other kind.
                  const Buffer plain(bytes);
                  CHILD_EQUAL(haul_wait(haul_copy(plain.data(), dst, bytes)), 0);
                  CHILD_EQUAL(haul_wait(haul_fill(dst, 0, 8, bytes)), 0);
                  CHILD_EQUAL(dst[bytes - 1], 0);
                  CHILD_EQUAL(haul_wait(haul_copy(dst, plain.data(), bytes)), 0);
                  CHILD_CHECK(holds(dst, bytes, bytes));
                  CHILD_EQUAL(haul_free(src), 0);
                  CHILD_EQUAL(haul_free(dst), 0);
                }
                return 0;
              }),
              0)
        << mover;
  }
}

TEST(Alloc, WrongUseIsRefusedAndHarmsNothing) {
  EXPECT_EQ(run_child([] {
              CHILD_EQUAL(haul_free(nullptr), 0);
              int here = 0;
              CHILD_EQUAL(haul_free(&here), HAUL_EINVAL);  // before there is an arena
              CHILD_CHECK(haul_alloc(0) == nullptr);
              CHILD_CHECK(std::strstr(haul_last_error(), "0 bytes") != nullptr);
              unsigned char* first = alloc(100'000);
              fill(first, 100'000, 1);
              CHILD_CHECK(haul_alloc(SIZE_MAX) == nullptr);
              CHILD_CHECK(std::strstr(haul_last_error(), "HAUL_MEMORY_ARENA_BYTES") != nullptr);
              CHILD_CHECK(haul_alloc(SIZE_MAX / 2) == nullptr);
              void* plain = std::malloc(10);
              for (void* wrong : {static_cast<void*>(first + 1), static_cast<void*>(first + 4096),
                                  static_cast<void*>(first - 4096), plain,
                                  reinterpret_cast<void*>(~std::uintptr_t{0}),
                                  reinterpret_cast<void*>(~std::uintptr_t{4095})}) {
                CHILD_EQUAL(haul_free(wrong), HAUL_EINVAL);
                CHILD_CHECK(std::strstr(haul_last_error(), "haul_alloc()") != nullptr);
              }
              std::free(plain);
              errno = 77;
              CHILD_EQUAL(haul_free(first), 0);
              CHILD_EQUAL(haul_free(first), HAUL_EINVAL);
              CHILD_EQUAL(errno, 77);
              // Also after a neighbour of it was freed and all of it is one gap.
              unsigned char* a = alloc(4096);
              unsigned char* b = alloc(4096);
              CHILD_EQUAL(haul_free(a), 0);
              CHILD_EQUAL(haul_free(b), 0);
              CHILD_EQUAL(haul_free(b), HAUL_EINVAL);
              CHILD_EQUAL(haul_free(a), HAUL_EINVAL);
              return 0;
            }),
            0);
}

TEST(Alloc, FreedMemoryIsTheSystemsAgain) {
  EXPECT_EQ(run_child([] {
              unsigned char* kept = alloc(1);
              *kept = 1;
              for (int round = 0; round < 4; ++round) {
                unsigned char* at = alloc(30 * mib);
                for (std::size_t i = 0; i < 30 * mib; i += 997) CHILD_EQUAL(at[i], 0);
                std::memset(at, 0xEE, 30 * mib);
                CHILD_CHECK(arena_resident() >= 30 * mib);
                CHILD_EQUAL(haul_free(at), 0);
                CHILD_CHECK(arena_resident() < mib);
              }
              CHILD_EQUAL(*kept, 1);
              return 0;
            }),
            0);
}

TEST(Alloc, AChildSharesWhatItInheritsAndHasItsOwn) {
  EXPECT_EQ(run_child([] {
              always_mover();
              unsigned char* shared = alloc(4 * mib);
              unsigned char* other = alloc(mib);
              fill(shared, 2 * mib, 1);
              fill(other, mib, 2);
              CHILD_EQUAL(run_child([=] {
                            CHILD_CHECK(holds(shared, 2 * mib, 1));
                            CHILD_EQUAL(haul_wait(haul_copy(shared + 2 * mib, shared, 2 * mib)), 0);
                            unsigned char* own = alloc(mib);
                            CHILD_CHECK(own < shared || own >= shared + 4 * mib);
                            CHILD_EQUAL(own[0], 0);
                            fill(own, mib, 3);
                            CHILD_EQUAL(haul_wait(haul_copy(own, other, mib)), 0);
                            CHILD_CHECK(holds(own, mib, 2));
                            CHILD_EQUAL(haul_free(other), 0);  // forgets it
                            CHILD_CHECK(holds(other, mib, 2));
                            CHILD_EQUAL(haul_free(other), HAUL_EINVAL);
                            // A child of the child has both kinds from its parent.
                            CHILD_EQUAL(run_child([=] {
                                          CHILD_CHECK(holds(own, mib, 2));
                                          CHILD_EQUAL(haul_free(other), HAUL_EINVAL);
                                          CHILD_EQUAL(haul_free(shared), 0);
                                          CHILD_EQUAL(haul_free(own), 0);
                                          CHILD_EQUAL(haul_free(own), HAUL_EINVAL);
                                          CHILD_EQUAL(haul_free(alloc(5 * mib)), 0);
                                          return 0;
                                        }),
                                        0);
                            CHILD_CHECK(holds(own, mib, 2));
                            CHILD_EQUAL(haul_free(own), 0);
                            CHILD_EQUAL(own[0], 0);
                            return 0;
                          }),
                          0);
              // What the child wrote is here, and what it forgot is not gone.
              CHILD_CHECK(holds(shared + 2 * mib, 2 * mib, 1));
              CHILD_CHECK(holds(other, mib, 2));
              CHILD_EQUAL(haul_free(other), 0);
              CHILD_EQUAL(haul_free(shared), 0);
              CHILD_EQUAL(haul_free(alloc(mib)), 0);
              return 0;
            }),
            0);
}

// The parent's descriptor is not kept by a child that never allocates, nor does a child of a bare
// clone, which no handler sees, work on its parent's arena.
TEST(Alloc, ABareCloneBeginsAnArenaOfItsOwn) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              unsigned char* shared = alloc(mib);
              fill(shared, mib, 1);
              CHILD_CHECK(arena_resident() >= mib);
              CHILD_EQUAL(run_child([] {
                            CHILD_EQUAL(arena_resident(), 0);
                            return 0;
                          }),
                          0);
              const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
              if (child == 0) {
                unsigned char* own = alloc(mib);
                CHILD_CHECK(own + mib <= shared || own >= shared + mib);
                std::memset(own, 9, mib);
                CHILD_EQUAL(haul_free(shared), 0);
                CHILD_EQUAL(haul_free(shared), HAUL_EINVAL);
                CHILD_EQUAL(haul_free(own), 0);
                _exit(0);
              }
              CHILD_EQUAL(end_of(static_cast<pid_t>(child)), 0);
              CHILD_CHECK(holds(shared, mib, 1));
              unsigned char* next = alloc(mib);
              CHILD_EQUAL(next[0], 0);
              CHILD_EQUAL(haul_free(shared), 0);
              return 0;
            }),
            0);
}

TEST(Alloc, ForksUnderLoad) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              always_mover();
              std::atomic<bool> stop{false};
              std::vector<std::thread> threads;
              for (unsigned char who = 1; who <= 3; ++who) {
                threads.emplace_back([&stop, who] {
                  for (std::size_t turn = 0; !stop; ++turn) {
                    const std::size_t bytes = 1 + turn * 7919 % (512 * kib);
                    unsigned char* src = alloc(bytes);
                    unsigned char* dst = alloc(bytes);
                    std::memset(src, who, bytes);
                    CHILD_EQUAL(haul_wait(haul_copy(dst, src, bytes)), 0);
                    CHILD_EQUAL(std::memcmp(dst, src, bytes), 0);
                    CHILD_EQUAL(haul_free(src), 0);
                    CHILD_EQUAL(haul_free(dst), 0);
                  }
                });
              }
              for (int round = 0; round < 40; ++round) {
                CHILD_EQUAL(run_child([] {
                              copy_works(mib, 1);
                              unsigned char* own = alloc(mib);
                              CHILD_EQUAL(own[mib - 1], 0);
                              CHILD_EQUAL(haul_free(own), 0);
                              return 0;
                            }),
                            0);
              }
              stop = true;
              for (std::thread& thread : threads) thread.join();
              return 0;
            }),
            0);
}

TEST(Alloc, LittleAddressSpaceMakesASmallerArena) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              quiet_environment();
              limit(RLIMIT_AS, 2048 * mib);
              unsigned char* at = alloc(100 * mib);
              at[100 * mib - 1] = 1;
              CHILD_CHECK(haul_alloc(1000 * mib) == nullptr);
              CHILD_CHECK(std::strstr(haul_last_error(), "ulimit -v") != nullptr);
              CHILD_EQUAL(haul_free(at), 0);
              void* rest = std::malloc(1000 * mib);  // the program's own share
              CHILD_CHECK(rest != nullptr);
              std::free(rest);
              return 0;
            }),
            0);
  EXPECT_EQ(run_child([] {
              quiet_environment();
              limit(RLIMIT_AS, 4 * mib);  // less than is in use
              CHILD_CHECK(haul_alloc(4096) == nullptr);
              CHILD_CHECK(std::strstr(haul_last_error(), "ulimit -v") != nullptr);
              limit(RLIMIT_AS, 2048 * mib);
              CHILD_EQUAL(haul_free(alloc(4096)), 0);
              return 0;
            }),
            0);
}

TEST(Alloc, LittleFileSizeMakesASmallerArenaAndNoSignal) {
  EXPECT_EQ(run_child([] {
              limit(RLIMIT_FSIZE, 10 * mib + 100);
              unsigned char* at = alloc(10 * mib);
              std::memset(at, 1, 10 * mib);
              CHILD_CHECK(haul_alloc(10 * mib + 1) == nullptr);
              CHILD_EQUAL(haul_free(at), 0);
              return 0;
            }),
            0);
  EXPECT_EQ(run_child([] {
              limit(RLIMIT_FSIZE, 0);
              CHILD_CHECK(haul_alloc(1) == nullptr);
              CHILD_CHECK(std::strstr(haul_last_error(), "-f") != nullptr);
              limit(RLIMIT_FSIZE, 64 * mib);
              CHILD_EQUAL(haul_free(alloc(1)), 0);
              return 0;
            }),
            0);
}

TEST(Alloc, NoDescriptorIsAnErrorAndNotForEver) {
  EXPECT_EQ(run_child([] {
              limit(RLIMIT_NOFILE, 16);
              std::vector<int> taken;
              for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) taken.push_back(fd);
              CHILD_CHECK(haul_alloc(4096) == nullptr);
              CHILD_CHECK(std::strstr(haul_last_error(), "open files") != nullptr);
              close(taken.back());
              unsigned char* at = alloc(4096);
              at[0] = 1;
              unsigned char* more = alloc(200 * mib);  // growing takes none
              more[200 * mib - 1] = 1;
              CHILD_EQUAL(haul_free(at), 0);
              return 0;
            }),
            0);
}

TEST(Alloc, AProgramThatClosesAllDescriptorsGetsASentence) {
  EXPECT_EQ(run_child([] {
              unsigned char* at = alloc(mib);
              fill(at, mib, 4);
              for (int fd = 3; fd < 64; ++fd) close(fd);
              CHILD_CHECK(holds(at, mib, 4));
              CHILD_EQUAL(haul_free(at), 0);
              at = alloc(mib);
              CHILD_EQUAL(at[0], 0);
              CHILD_CHECK(haul_alloc(500 * mib) == nullptr);
              CHILD_CHECK(std::strstr(haul_last_error(), "closed descriptor") != nullptr);
              return 0;
            }),
            0);
}

TEST(Alloc, WithoutMemfdsThereIsASentence) {
  EXPECT_EQ(run_child([] {
              CHILD_CHECK(refuse_system_calls({SYS_memfd_create}, ENOSYS));
              CHILD_CHECK(haul_alloc(4096) == nullptr);
              CHILD_CHECK(std::strstr(haul_last_error(), "memory of your own") != nullptr);
              return 0;
            }),
            0);
}

TEST(Alloc, WhatTheKernelDoesNotTakeBackStaysAllocated) {
  EXPECT_EQ(run_child([] {
              unsigned char* at = alloc(mib);
              fill(at, mib, 1);
              CHILD_CHECK(refuse_system_calls({SYS_madvise, SYS_fallocate}, EPERM));
              CHILD_EQUAL(haul_free(at), HAUL_EIO);
              CHILD_CHECK(holds(at, mib, 1));
              unsigned char* next = alloc(mib);
              CHILD_CHECK(next != at && next[0] == 0);
              return 0;
            }),
            0);
}

std::size_t entries_of(const char* path) {
  std::size_t count = 0;
  DIR* folder = opendir(path);
  if (folder == nullptr) return 0;
  while (const dirent* entry = readdir(folder)) {
    if (std::strstr(entry->d_name, "haul") != nullptr) ++count;
  }
  closedir(folder);
  return count;
}

TEST(Alloc, AKilledProcessLeavesNothing) {
  const std::size_t before = entries_of("/dev/shm") + entries_of("/tmp");
  for (unsigned round = 0; round < 5; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = start_child([&] {
      for (;;) {
        unsigned char* at = alloc(mib);
        std::memset(at, 1, mib);
        if (write(ready[1], "r", 1) != 1) return 1;
        CHILD_EQUAL(haul_free(at), 0);
      }
      return 0;
    });
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    usleep(round * 300);
    kill(child, SIGKILL);
    EXPECT_EQ(end_of(child), 1000 + SIGKILL);
    close(ready[0]);
    close(ready[1]);
  }
  EXPECT_EQ(entries_of("/dev/shm") + entries_of("/tmp"), before);
}

}  // namespace
