// Pages that are made when an allocation is born, for a program that fills those of its size.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "born/support.hpp"

namespace {

using namespace born;

// How many pages of a fresh allocation are there.
std::size_t pages_of(const void* block, std::size_t bytes) {
  std::vector<unsigned char> there(bytes / 4096);
  EXPECT_EQ(mincore(const_cast<void*>(block), bytes, there.data()), 0);
  std::size_t count = 0;
  for (unsigned char one : there) count += one & 1;
  return count;
}

class BornHistory : public testing::Test {
 protected:
  void SetUp() override {
    if (access("/sys/devices/system/node/node1", F_OK) == 0)
      GTEST_SKIP() << "memory of several nodes: no pages are made";
  }
};

TEST_F(BornHistory, ASizeThatIsFilledGetsItsPagesAtOnce) {
  // Given back when it is freed. One size kept, the other freed, both of no other test.
  for (const bool freed : {false, true}) {
    const std::size_t bytes = 34 * mib + (freed ? 8192 : 4096);
    std::vector<void*> blocks;
    for (int i = 0; i < 3; ++i) {
      void* const block = kept(std::malloc(bytes));
      ASSERT_TRUE(is_shared(block, bytes));
      EXPECT_EQ(pages_of(block, bytes), i < 2 ? 0 : bytes / 4096) << i;
      EXPECT_TRUE(i < 2 || all_are(block, bytes, 0));
      std::memset(block, 1, bytes);
      if (freed)
        std::free(block);
      else
        blocks.push_back(block);
    }
    for (void* block : blocks) std::free(block);
  }
}

TEST_F(BornHistory, ASizeOfWhichPartsAreLeftAloneDoesNot) {
  constexpr std::size_t bytes = 35 * mib;
  for (const std::size_t hole : {bytes - 4096, 17 * mib}) {
    for (int i = 0; i < 4; ++i) {
      auto* const block = static_cast<unsigned char*>(kept(std::malloc(bytes)));
      EXPECT_EQ(pages_of(block, bytes), 0u);
      std::memset(block, 1, hole);
      if (hole < bytes / 2) std::memset(block + hole + 3 * mib, 1, bytes - hole - 3 * mib);
      std::free(block);
    }
  }
}

TEST_F(BornHistory, NowAndThenItLooksAgain) {
  constexpr std::size_t bytes = 36 * mib;
  const auto born_with_pages = [] {
    auto* const block = static_cast<unsigned char*>(kept(std::malloc(bytes)));
    const bool has = pages_of(block, bytes) != 0;
    return std::pair(block, has);
  };
  for (int i = 0; i < 3; ++i) {
    const auto [block, has] = born_with_pages();
    std::memset(block, 1, bytes);
    std::free(block);
  }
  int made = 0;
  for (int i = 0; i < 30; ++i) {  // it is never filled again
    const auto [block, has] = born_with_pages();
    *block = 1;
    std::free(block);
    made += has ? 1 : 0;
  }
  EXPECT_GT(made, 0);
  EXPECT_LT(made, 9);
}

// Can a memfd's pages be made huge here?
bool has_huge_files() {
  constexpr int collapse = 25;  // MADV_COLLAPSE
  constexpr std::size_t huge = 2 * mib;
  const int file = memfd_create("probe", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(2 * huge)) != 0) return false;
  void* const mapped = mmap(nullptr, 2 * huge, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return false;
  const auto at = (reinterpret_cast<std::uintptr_t>(mapped) + huge - 1) / huge * huge;
  // (A file's huge pages are mapped only where addresses and offsets agree.)
  if (at != reinterpret_cast<std::uintptr_t>(mapped)) return true;
  *reinterpret_cast<volatile char*>(at) = 1;
  const bool made = madvise(reinterpret_cast<void*>(at), huge, collapse) == 0;
  munmap(mapped, 2 * huge);
  return made;
}

std::size_t huge_kib() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::size_t kib_there = 0;
  for (std::string word; rollup >> word;)
    if (word == "ShmemPmdMapped:") rollup >> kib_there;
  return kib_there;
}

// In a process of its own, since how busy the machine is must not count.
TEST_F(BornHistory, ThosePagesAreHugeWhereTheyCanBeHad) {
  if (std::getenv("HAUL_MEMORY_HUGE") == nullptr) {
    const int status = run_child([] {
      setenv("HAUL_MEMORY_HUGE", "on", 1);
      execl("/proc/self/exe", "born", "--gtest_filter=BornHistory.ThosePages*", "--gtest_brief=1",
            nullptr);
    });
    EXPECT_EQ(status, 0);
    return;
  }
  if (!has_huge_files()) GTEST_SKIP() << "this kernel makes no huge pages of files";
  constexpr std::size_t bytes = 40 * mib;
  for (int i = 0; i < 3; ++i) {
    void* const block = kept(std::malloc(bytes));
    std::memset(block, 1, bytes);
    if (i == 2) {
      EXPECT_GT(huge_kib(), 0u);
    }
    std::free(block);
  }
}

}  // namespace
