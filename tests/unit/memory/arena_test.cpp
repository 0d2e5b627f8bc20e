// The arena as the library sees it: its bounds, its memfd, the hook, and a descriptor that the
// program closed. Each in a child, whose arena is fresh.
#include "memory/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "base/knobs.hpp"
#include "base/os/pages/sealed.hpp"
#include "e2e/support.hpp"
#include "sizes.hpp"

namespace haul {
namespace {

using e2e::mib;
using e2e::run_child;

unsigned char* allocate(std::size_t bytes) {
  Error error;
  void* at = arena_allocate(bytes, 4096, &error);
  if (at == nullptr) std::fprintf(stderr, "%s\n", error.sentence);
  CHILD_CHECK(at != nullptr);
  return static_cast<unsigned char*>(at);
}

Code free_at(const void* at) {
  Error error;
  const Code code = arena_free(const_cast<void*>(at), &error);
  CHILD_CHECK(code == error.code);
  CHILD_CHECK((code == Code::ok) == (error.sentence[0] == '\0'));
  return code;
}

bool contains(const void* at, std::size_t bytes) {
  return arena_bounds.contains(reinterpret_cast<std::uintptr_t>(at), bytes);
}

std::size_t resident_bytes(int fd) {
  struct stat status {};
  CHILD_EQUAL(fstat(fd, &status), 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

constinit std::atomic<int> hook_runs{0};

TEST(Arena, AddressAndOffsetDifferByTheBase) {
  EXPECT_EQ(run_child([] {
              CHILD_EQUAL(arena_view().fd, -1);
              const int here = 0;
              CHILD_CHECK(!contains(&here, 0));
              on_arena_made([]() noexcept {
                // Without the lock, and with the arena to be seen.
                CHILD_CHECK(arena_view().fd >= 0);
                CHILD_EQUAL(free_at(allocate(1)), Code::ok);
                ++hook_runs;
              });
              unsigned char* first = allocate(3 * page);
              unsigned char* second = allocate(100 * mib);
              CHILD_EQUAL(hook_runs.load(), 1);
              const ArenaView view = arena_view();
              CHILD_EQUAL(view.bytes, std::size_t{256} << 30);
              CHILD_EQUAL(fcntl(view.fd, F_GETFD), FD_CLOEXEC);
              CHILD_EQUAL(fcntl(view.fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
              second[77] = 42;
              first[1] = 7;
              for (unsigned char* at : {first + 1, second + 77}) {
                const std::size_t offset = reinterpret_cast<std::uintptr_t>(at) - view.base;
                unsigned char byte = 0;
                CHILD_EQUAL(pread(view.fd, &byte, 1, static_cast<off_t>(offset)), 1);
                CHILD_EQUAL(byte, *at);
              }
              CHILD_CHECK(contains(first, 3 * page) && contains(second, 100 * mib));
              CHILD_CHECK(contains(reinterpret_cast<void*>(view.base), view.bytes));
              CHILD_CHECK(!contains(reinterpret_cast<void*>(view.base), view.bytes + 1));
              CHILD_CHECK(!contains(reinterpret_cast<void*>(view.base - 1), 2));
              CHILD_CHECK(!contains(first, SIZE_MAX));
              CHILD_CHECK(!contains(&here, sizeof here));
              return 0;
            }),
            0);
}

TEST(Arena, FreedPagesGoBackAndComeAsZeroes) {
  EXPECT_EQ(run_child([] {
              unsigned char* kept = allocate(page);
              kept[0] = 1;
              const int fd = arena_view().fd;
              for (int round = 0; round < 3; ++round) {
                unsigned char* at = allocate(20 * mib);
                for (std::size_t i = 0; i < 20 * mib; ++i) CHILD_EQUAL(at[i], 0);
                std::memset(at, 0xFF, 20 * mib);
                CHILD_CHECK(resident_bytes(fd) >= 20 * mib);
                CHILD_EQUAL(free_at(at), Code::ok);
                CHILD_CHECK(resident_bytes(fd) <= 64 * page);
                CHILD_EQUAL(free_at(at), Code::invalid);
              }
              // Locked memory takes the other road. (Sanitizers make mlock() do nothing.)
              unsigned char* at = allocate(4 * page);
              std::memset(at, 0xFF, 4 * page);
              if (syscall(SYS_mlock, at, 4 * page) == 0) {
                CHILD_EQUAL(free_at(at), Code::ok);
                CHILD_EQUAL(at[page], 0);
              }
              CHILD_EQUAL(kept[0], 1);
              return 0;
            }),
            0);
}

TEST(Arena, NeverWorksOnADescriptorThatIsNotItsOwn) {
  EXPECT_EQ(run_child([] {
              unsigned char* at = allocate(mib);
              std::memset(at, 5, mib);
              const int fd = arena_view().fd;
              char path[] = "/tmp/haul-arena-XXXXXX";
              const int other = mkstemp(path);
              unlink(path);
              std::vector<unsigned char> theirs(2 * mib, 9);
              CHILD_EQUAL(write(other, theirs.data(), theirs.size()), 2 * mib);
              CHILD_EQUAL(dup2(other, fd), fd);  // as a program does that closes all and opens anew

              CHILD_EQUAL(arena_view().fd, -1);
              Error error;
              CHILD_CHECK(arena_allocate(200 * mib, 4096, &error) == nullptr);
              CHILD_CHECK(error.code == Code::no_memory);
              CHILD_CHECK(std::strstr(error.sentence, "closed descriptor") != nullptr);
              // What is mapped can still be had, and freed.
              unsigned char* more = allocate(mib);
              CHILD_EQUAL(more[0], 0);
              CHILD_EQUAL(free_at(at), Code::ok);
              CHILD_EQUAL(allocate(mib)[17], 0);
              if (syscall(SYS_mlock, more, mib) == 0) CHILD_EQUAL(free_at(more), Code::io);
              // The last page of many: what stays can be freed again.
              unsigned char* many = allocate(30 * mib);
              if (syscall(SYS_mlock, many + 30 * mib - page, page) == 0) {
                many[30 * mib - 1] = 6;
                CHILD_EQUAL(free_at(many), Code::io);
                CHILD_EQUAL(many[30 * mib - 1], 6);
                CHILD_EQUAL(syscall(SYS_munlock, many, 30 * mib), 0);
              }
              CHILD_EQUAL(free_at(many), Code::ok);
              std::vector<unsigned char> now(2 * mib);
              CHILD_EQUAL(pread(other, now.data(), now.size(), 0), 2 * mib);
              CHILD_CHECK(now == theirs);
              // A child does not close what is not haul's either.
              CHILD_EQUAL(run_child([fd] {
                            CHILD_CHECK(fcntl(fd, F_GETFD) >= 0);
                            allocate(page);
                            return 0;
                          }),
                          0);
              return 0;
            }),
            0);
}

TEST(Arena, TheDescriptorIsNeverAStandardStream) {
  EXPECT_EQ(run_child([] {
              close(0);
              close(1);
              allocate(page);
              CHILD_CHECK(arena_view().fd > 2);
              CHILD_CHECK(fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0);
              return 0;
            }),
            0);
}

TEST(Arena, SealedMemoryPastTheFileLimitIsAnErrorAndNoSignal) {
  EXPECT_EQ(run_child([] {
              rlimit limits{mib, RLIM_INFINITY};
              getrlimit(RLIMIT_FSIZE, &limits);
              limits.rlim_cur = mib;
              CHILD_EQUAL(setrlimit(RLIMIT_FSIZE, &limits), 0);
              CHILD_EQUAL(os::make_sealed("haul-test", mib + 1), -EFBIG);
              CHILD_CHECK(os::make_sealed("haul-test", mib) > 2);
              return 0;
            }),
            0);
}

TEST(Arena, TheKnobLimitsIt) {
  EXPECT_EQ(run_child([] {
              setenv("HAUL_MEMORY_ARENA_BYTES", "64M", 1);
              reread_knobs();
              Error error;
              CHILD_CHECK(arena_allocate(64 * mib + 1, 4096, &error) == nullptr);
              CHILD_CHECK(error.code == Code::invalid);
              CHILD_CHECK(arena_allocate(SIZE_MAX, 4096, &error) == nullptr);
              CHILD_CHECK(error.code == Code::invalid);
              unsigned char* all = allocate(64 * mib);
              CHILD_CHECK(arena_allocate(1, 4096, &error) == nullptr);
              CHILD_CHECK(error.code == Code::no_memory);
              all[64 * mib - 1] = 1;
              CHILD_EQUAL(free_at(all), Code::ok);
              CHILD_CHECK(allocate(1) == all);
              return 0;
            }),
            0);
}

TEST(Arena, ManyThreadsGetMemoryOfTheirOwn) {
  EXPECT_EQ(run_child([] {
              constexpr unsigned threads = 6;
              std::atomic<unsigned> forks{0};
              const auto body = [&forks](unsigned who) {
                std::mt19937 random(who);
                std::vector<std::pair<unsigned char*, std::size_t>> mine;
                for (int step = 0; step < 1500; ++step) {
                  if (mine.size() < 20 && random() % 2 == 0) {
                    const std::size_t bytes = 1 + random() % (40 * page);
                    unsigned char* at = allocate(bytes);
                    CHILD_EQUAL(reinterpret_cast<std::uintptr_t>(at) % page, 0);
                    for (std::size_t i = 0; i < bytes; i += 512) {
                      CHILD_EQUAL(at[i], 0);
                      at[i] = static_cast<unsigned char>(who + 1);
                    }
                    mine.emplace_back(at, bytes);
                  } else if (!mine.empty()) {
                    std::swap(mine[random() % mine.size()], mine.back());
                    const auto [at, bytes] = mine.back();
                    mine.pop_back();
                    for (std::size_t i = 0; i < bytes; i += 512) CHILD_EQUAL(at[i], who + 1);
                    CHILD_EQUAL(free_at(at), Code::ok);
                  }
                  if (who == 0 && step % 100 == 0 && !e2e::sanitizer) {
                    // The lock is free and the tables are whole in every child.
                    CHILD_EQUAL(run_child([&mine] {
                                  CHILD_CHECK(arena_bounds.bytes == 0 && arena_view().fd == -1);
                                  for (const auto& [at, bytes] : mine)
                                    CHILD_EQUAL(free_at(at), Code::ok);
                                  allocate(page)[0] = 1;
                                  return 0;
                                }),
                                0);
                    ++forks;
                  }
                }
              };
              std::vector<std::thread> running;
              for (unsigned who = 0; who < threads; ++who) running.emplace_back(body, who);
              for (std::thread& thread : running) thread.join();
              CHILD_CHECK(e2e::sanitizer || forks == 15);
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace haul
