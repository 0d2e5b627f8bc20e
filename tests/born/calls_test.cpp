// The functions that allocate: what they give, and that they do what their man pages say.
#include <malloc.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "born/support.hpp"

namespace {

using namespace born;

// Called through these where a block is looked at afterwards, which compilers know to be wrong.
void* (*volatile call_realloc)(void*, std::size_t) = std::realloc;
void (*volatile call_free)(void*) = std::free;

TEST(BornCalls, LargeAllocationsAreSharedAndSmallOnesAreNot) {
  void* const large = kept(std::malloc(64 * kib));
  void* const small = kept(std::malloc(64 * kib - 1));
  EXPECT_TRUE(is_shared(large, 64 * kib));
  EXPECT_FALSE(is_shared(small));
  std::free(small);
  std::free(large);
}

TEST(BornCalls, EveryFunctionThatAllocatesGivesSharedMemory) {
  void* posix = nullptr;
  ASSERT_EQ(posix_memalign(&posix, 4096, mib), 0);
  void* const all[] = {std::calloc(mib, 1),
                       std::realloc(nullptr, mib),
                       aligned_alloc(64, mib),
                       memalign(64, mib),
                       valloc(mib),
                       pvalloc(mib),
                       posix,
                       reallocarray(nullptr, mib, 1)};
  for (void* one : all) {
    ASSERT_NE(one, nullptr);
    EXPECT_TRUE(is_shared(one, mib));
    EXPECT_GE(malloc_usable_size(one), mib);
    std::memset(one, 7, mib);
  }
  for (void* one : all) std::free(one);
  const auto array = std::make_unique<char[]>(mib);
  EXPECT_TRUE(is_shared(array.get(), mib)) << "operator new";
}

TEST(BornCalls, CallocGivesZeroesAlsoWhereAnotherAllocationLay) {
  constexpr std::size_t bytes = 777 * kib;  // of no other test
  void* const dirty = kept(std::malloc(bytes));
  std::memset(dirty, 0xa5, bytes);
  call_free(dirty);
  void* const clean = kept(std::calloc(1, bytes));
  EXPECT_EQ(clean, dirty) << "nothing was kept: this test shows nothing";
  EXPECT_TRUE(all_are(clean, bytes, 0));
  std::free(clean);
}

TEST(BornCalls, ReallocKeepsTheBytesThroughAllKindsOfMemory) {
  const std::size_t sizes[] = {100, 100 * kib, 3 * mib, 40 * mib, mib, 70 * kib, 50, 64 * kib, 200};
  auto* block = static_cast<unsigned char*>(std::malloc(sizes[0]));
  std::size_t bytes = sizes[0];
  for (std::size_t i = 0; i < bytes; ++i) block[i] = static_cast<unsigned char>(i * 31);
  for (const std::size_t next : sizes) {
    block = static_cast<unsigned char*>(kept(std::realloc(block, next)));
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(is_shared(block), next >= 64 * kib);
    for (std::size_t i = 0; i < std::min(bytes, next); ++i)
      ASSERT_EQ(block[i], static_cast<unsigned char>(i * 31)) << i << " of " << next;
    for (std::size_t i = bytes; i < next; ++i) block[i] = static_cast<unsigned char>(i * 31);
    bytes = next;
  }
  EXPECT_EQ(std::realloc(block, 0), nullptr);
}

TEST(BornCalls, AlignmentsAreKeptAndWrongOnesRefused) {
  for (std::size_t alignment = 16; alignment <= 4 * mib; alignment *= 2) {
    void* const block =
        kept(aligned_alloc(alignment, 2 * alignment < 64 * kib ? 64 * kib : 2 * alignment));
    ASSERT_NE(block, nullptr) << alignment;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    EXPECT_EQ(is_shared(block), alignment <= 2 * mib);
    std::free(block);
  }
  void* none = nullptr;
  EXPECT_EQ(posix_memalign(&none, 48, mib), EINVAL);
  EXPECT_EQ(posix_memalign(&none, 4, mib), EINVAL);
  // Those of 2 MiB and more can lie on huge pages.
  void* const huge = kept(std::malloc(5 * mib));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(huge) % (2 * mib), 0u);
  std::free(huge);
}

TEST(BornCalls, WhatNobodyHasIsRefusedAsByLibc) {
  errno = 0;
  EXPECT_EQ(std::malloc(kept(reinterpret_cast<char*>(SIZE_MAX / 2)) - static_cast<char*>(nullptr)),
            nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  volatile std::size_t half = SIZE_MAX / 2;
  EXPECT_EQ(std::calloc(half, 4), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(reallocarray(nullptr, half, 4), nullptr);
  void* const block = kept(std::malloc(mib));
  std::memset(block, 5, mib);
  EXPECT_EQ(call_realloc(block, half), nullptr);
  EXPECT_TRUE(all_are(block, mib, 5)) << "a realloc() that fails leaves the block";
  std::free(block);
}

TEST(BornCalls, FreeLeavesErrnoAlone) {
  void* const block = kept(std::malloc(40 * mib));  // goes back to the system
  errno = 77;
  std::free(block);
  EXPECT_EQ(errno, 77);
}

TEST(BornCalls, AnotherThreadMayFree) {
  constexpr unsigned rounds = 500;
  std::vector<void*> blocks(rounds);
  std::thread makes([&] {
    for (unsigned i = 0; i < rounds; ++i) {
      blocks[i] = std::malloc(64 * kib + i * 4096);
      std::memset(blocks[i], static_cast<int>(i), 64 * kib);
    }
  });
  makes.join();
  std::thread frees([&] {
    for (unsigned i = 0; i < rounds; ++i) {
      EXPECT_TRUE(all_are(blocks[i], 64 * kib, static_cast<unsigned char>(i)));
      std::free(blocks[i]);
    }
  });
  frees.join();
}

TEST(BornCalls, ManyAllocationsAreMoreThanTheArenaTakesAndGoToLibc) {
  std::vector<unsigned char*> blocks;
  bool libc = false;
  for (unsigned i = 0; i < 40000; ++i) {
    blocks.push_back(static_cast<unsigned char*>(std::malloc(64 * kib)));
    ASSERT_NE(blocks.back(), nullptr);
    *blocks.back() = static_cast<unsigned char>(i);
    libc = libc || !is_shared(blocks.back());
  }
  EXPECT_TRUE(libc);
  for (unsigned i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(*blocks[i], static_cast<unsigned char>(i));
    std::free(blocks[i]);
  }
}

// The program runs as this one does, under libhaul-malloc.so.
TEST(BornCalls, AProgramsOwnMallocIsLeftToItAndThatIsSaid) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = transparent::start_child([&] {
    dup2(ends[1], STDERR_FILENO);
    execl(HAUL_OWN_MALLOC, HAUL_OWN_MALLOC, nullptr);
  });
  close(ends[1]);
  std::string said;
  char piece[512];
  for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) > 0;)
    said.append(piece, static_cast<std::size_t>(got));
  close(ends[0]);
  EXPECT_EQ(transparent::end_of(child), 0) << said;
  EXPECT_NE(said.find("large allocations are private"), std::string::npos) << said;
  EXPECT_NE(said.find(HAUL_OWN_MALLOC), std::string::npos) << said;
}

TEST(BornCallsDeathTest, ASecondFreeEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        void* const block = kept(std::malloc(mib));
        call_free(block);
        call_free(block);
      },
      "freed already");
}

}  // namespace
