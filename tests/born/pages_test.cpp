// What programs do to pages themselves, and to the process's limits and descriptors.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdlib>

#include "born/support.hpp"

namespace {

using namespace born;

class BornPages : public testing::Test {
 protected:
  void SetUp() override {
    block = static_cast<unsigned char*>(kept(std::malloc(bytes)));
    ASSERT_TRUE(is_shared(block, bytes));
    std::memset(block, 6, bytes);
  }
  void TearDown() override { std::free(block); }
  static constexpr std::size_t bytes = 4 * mib;
  unsigned char* block = nullptr;
};

TEST_F(BornPages, WhatIsGivenUpReadsAsZero) {
  EXPECT_EQ(madvise(block + mib, mib, MADV_DONTNEED), 0);
  EXPECT_TRUE(all_are(block, mib, 6));
  EXPECT_TRUE(all_are(block + mib, mib, 0));
  EXPECT_TRUE(all_are(block + 2 * mib, 2 * mib, 6));
  EXPECT_EQ(syscall(SYS_madvise, block + 2 * mib, mib, MADV_DONTNEED), 0);
  EXPECT_TRUE(all_are(block + 2 * mib, mib, 0));
  std::memset(block, 1, bytes);
  EXPECT_EQ(madvise(block, bytes, MADV_FREE), 0);
  EXPECT_TRUE(all_are(block, bytes, 0) || all_are(block, bytes, 1));
  EXPECT_EQ(munmap(block, mib), 0);
  EXPECT_TRUE(all_are(block, mib, 0));
}

TEST_F(BornPages, AChildsPagesAreGivenUpToo) {
  EXPECT_EQ(run_child([&] {
              CHILD_CHECK(madvise(block, mib, MADV_DONTNEED) == 0);
              CHILD_CHECK(all_are(block, mib, 0));
              CHILD_CHECK(munmap(block, bytes) == 0);
            }),
            0);
  EXPECT_TRUE(all_are(block, bytes, 6));
}

TEST_F(BornPages, WhatIsMovedAwayHasItsBytes) {
  void* const larger = mremap(block, bytes, 2 * bytes, MREMAP_MAYMOVE);
  ASSERT_NE(larger, MAP_FAILED);
  EXPECT_FALSE(is_shared(larger)) << "the next allocation would lie in it";
  EXPECT_TRUE(all_are(larger, bytes, 6));
  EXPECT_TRUE(all_are(static_cast<unsigned char*>(larger) + bytes, bytes, 0));
  munmap(larger, 2 * bytes);
  std::memset(block, 7, bytes);
  EXPECT_EQ(mremap(block, bytes, mib, 0), block);
  EXPECT_TRUE(all_are(block, mib, 7));
  EXPECT_EQ(mremap(block, bytes, 2 * bytes, 0), MAP_FAILED);
}

TEST_F(BornPages, NothingIsMappedInItsPlace) {
  EXPECT_EQ(mmap(block, mib, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  EXPECT_EQ(mmap(block + mib, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED)
      << "in the middle of it";
  EXPECT_TRUE(all_are(block, bytes, 6));
}

TEST_F(BornPages, RightsAndLocksWork) {
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(mprotect(block, 4096, PROT_READ), 0);
  EXPECT_EQ(read(zero, block, 1), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(mprotect(block, 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(read(zero, block, 1), 1);
  close(zero);
  if (mlock(block, 64 * kib) == 0) {
    EXPECT_EQ(munlock(block, 64 * kib), 0);
  }
}

// Locked memory is given up otherwise, and mlockall() locks what is born afterwards.
TEST(BornLimitsDeathTest, LockedMemoryIsAllocatedForkedAndFreed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        rlimit limit{};
        getrlimit(RLIMIT_MEMLOCK, &limit);
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_MEMLOCK, &limit);
        bool good = true;
        for (int round = 0; round < 6 && good; ++round) {
          auto* const block = static_cast<unsigned char*>(kept(std::malloc(40 * mib)));
          auto* const small = static_cast<unsigned char*>(kept(std::malloc(mib)));
          good = block != nullptr && small != nullptr;
          std::memset(block, round + 1, 40 * mib);
          std::memset(small, round + 1, mib);
          // (Refused where the limit is small, or where the arena is not locked.)
          if (round == 2) mlockall(MCL_CURRENT | MCL_FUTURE);
          mlock(small, mib);
          good = good && run_child([&] {
                           CHILD_CHECK(all_are(block, 40 * mib, block[0]));
                           CHILD_CHECK(all_are(small, mib, block[0]));
                         }) == 0;
          if (madvise(small, mib, MADV_DONTNEED) == 0) good = good && all_are(small, mib, 0);
          std::free(block);
          std::free(small);
          auto* const again = static_cast<unsigned char*>(kept(std::calloc(1, 40 * mib)));
          good = good && all_are(again, 40 * mib, 0);
          std::free(again);
        }
        _exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(BornLimitsDeathTest, LimitedAddressesAreSharedWithLibc) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = std::size_t{2} << 30;
        bool good = setrlimit(RLIMIT_AS, &limit) == 0;
        unsigned shared = 0;
        unsigned got = 0;
        for (; got < 4096; ++got) {
          auto* const block = static_cast<unsigned char*>(std::malloc(mib));
          if (block == nullptr) break;
          *kept(block) = 1;
          if (is_shared(block)) ++shared;
        }
        good = good && got > 1024 && got < 2048 && shared > 100 && shared < got;
        _exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(BornLimits, WithoutTheArenasDescriptorThereIsNoneOfIt) {
  EXPECT_EQ(run_child([] {
              // (execv() would give the child an arena of its own; so it has its parent's, copied.)
              void* const before = kept(std::malloc(mib));
              CHILD_CHECK(before != nullptr);
              for (int file = 3; file < 256; ++file) close(file);
              void* const after = kept(std::malloc(mib));
              CHILD_CHECK(after != nullptr);
              std::memset(after, 1, mib);
              std::free(after);
              std::free(before);
            }),
            0);
}

TEST(BornLimitsDeathTest, WhatIsKeptAddsNothingToThePeak) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto touched = [](std::size_t bytes) {
    auto* const block = static_cast<unsigned char*>(kept(std::malloc(bytes)));
    std::memset(block, 1, bytes);
    return block;
  };
  EXPECT_EXIT(
      {
        unsigned char* blocks[4];
        for (auto& block : blocks) block = touched(16 * mib);
        for (auto* block : blocks) std::free(block);
        std::free(touched(64 * mib));
        rusage used{};
        getrusage(RUSAGE_SELF, &used);
        const std::size_t peak = static_cast<std::size_t>(used.ru_maxrss) * kib;
        std::fprintf(stderr, "peak %zu MiB\n", peak / mib);
        _exit(peak > 64 * mib && peak < 85 * mib ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// In the process itself, as a daemon does, with its allocations still there.
TEST(BornLimitsDeathTest, ClosingAllDescriptorsLosesNothing) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        auto* const block = static_cast<unsigned char*>(kept(std::malloc(3 * mib)));
        std::memset(block, 5, 3 * mib);
        for (int file = 3; file < 256; ++file) close(file);
        bool good = is_shared(block);
        for (int i = 0; i < 40; ++i) {
          auto* const more = static_cast<unsigned char*>(kept(std::malloc(5 * mib)));
          good = good && more != nullptr;
          std::memset(more, 6, 5 * mib);
        }
        std::free(kept(std::malloc(mib)));
        good = good && all_are(block, 3 * mib, 5);
        std::free(block);
        _exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
