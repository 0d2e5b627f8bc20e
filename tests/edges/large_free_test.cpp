// haul_free() of much memory takes the kernel a while. Meanwhile other threads allocate, handlers
// run, and the process may fork. This program's own madvise() tells when it is amid that.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <thread>
#include <utility>

#include "e2e/load.hpp"
#include "e2e/support.hpp"

namespace {

// Runs once, in the thread that frees, when the first part of the pages goes back.
using Step = void (*)();
constinit Step amid_freeing = nullptr;
std::atomic<unsigned> parts{0};

}  // namespace

extern "C" int madvise(void* at, std::size_t bytes, int advice) noexcept {
  if (advice == MADV_REMOVE && ++parts == 1 && amid_freeing != nullptr)
    std::exchange(amid_freeing, nullptr)();
  return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}

namespace {

using namespace e2e;

constexpr std::size_t large = 64 * mib;
unsigned char* memory = nullptr;

void allocate_large() {
  memory = static_cast<unsigned char*>(haul_alloc(large));
  CHILD_CHECK(memory != nullptr);
  std::memset(memory, 1, large);
}

// Frees it and does `step` amid that.
void free_large(Step step) {
  parts = 0;
  amid_freeing = step;
  CHILD_EQUAL(haul_free(memory), 0);
  CHILD_CHECK(amid_freeing == nullptr);
}

void has_memory_of_its_own() {
  void* own = haul_alloc(mib);
  CHILD_CHECK(own != nullptr && own != memory);
  std::memset(own, 2, mib);
  CHILD_EQUAL(haul_free(own), 0);
}

TEST(LargeFree, OtherThreadsAllocateAndForkMeanwhile) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              allocate_large();
              free_large([] {
                static std::atomic<bool> over{false};
                std::thread other([] {
                  has_memory_of_its_own();
                  CHILD_EQUAL(haul_free(memory), HAUL_EINVAL);  // freed twice
                  CHILD_EQUAL(run_child([] {
                                CHILD_EQUAL(haul_free(memory), HAUL_EINVAL);
                                has_memory_of_its_own();
                                return 0;
                              }),
                              0);
                  over = true;
                });
                for (int turn = 0; turn < 20'000 && !over; ++turn) sleep_ms(1);
                CHILD_CHECK(over);
                other.join();
              });
              CHILD_EQUAL(haul_free(memory), HAUL_EINVAL);
              return 0;
            }),
            0);
}

volatile sig_atomic_t parts_at_signal = 0;

TEST(LargeFree, HandlersRunMeanwhile) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              allocate_large();
              signal(SIGUSR1, [](int) { parts_at_signal = static_cast<int>(parts); });
              free_large([] { raise(SIGUSR1); });
              CHILD_EQUAL(parts_at_signal, 1);
              CHILD_CHECK(parts > 1);
              return 0;
            }),
            0);
}

int go_on[2];
volatile pid_t forked = -1;

void fork_in_handler(int) {
  forked = fork();
  if (forked != 0) return;
  // The child's part of the call comes when the parent has allocated the same memory anew.
  char byte = 0;
  CHILD_EQUAL(read(go_on[0], &byte, 1), 1);
}

TEST(LargeFree, TheChildOfAHandlerLeavesTheMemoryToTheParent) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(run_child([] {
              CHILD_EQUAL(pipe(go_on), 0);
              allocate_large();
              signal(SIGUSR1, fork_in_handler);
              free_large([] { raise(SIGUSR1); });
              if (forked == 0) {
                CHILD_EQUAL(haul_free(memory), HAUL_EINVAL);
                has_memory_of_its_own();
                _exit(0);
              }
              const unsigned char* before = memory;
              allocate_large();
              CHILD_CHECK(memory == before);
              CHILD_EQUAL(write(go_on[1], "", 1), 1);
              int status = -1;
              CHILD_EQUAL(waitpid(forked, &status, 0), forked);
              CHILD_EQUAL(status, 0);
              for (std::size_t at = 0; at < large; ++at) CHILD_EQUAL(memory[at], 1);
              return 0;
            }),
            0);
}

}  // namespace
