// What a device that need not have memory registered registers all the same: what comes again, and
// what comes once where that pays.
#include <gtest/gtest.h>

#include "unit/memory/region_support.hpp"

namespace haul {
namespace {

std::uint64_t asker = 0;

// One use of memory by a device that need not register it: registered meanwhile?
bool use_whole(World& world, std::uintptr_t address, std::size_t bytes) {
  RegisteredUse use;
  const Code code = world.cache.acquire_whole(world.registrar, address, bytes, ++asker, &use);
  if (code == Code::ok) world.cache.release(use);
  return code == Code::ok;
}

TEST(RegionChoice, WhatComesOnceIsRegisteredForThatUseWhereItPays) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  world.registrar.pays_from = 8 * page;
  world.registrar.least = SIZE_MAX;
  const Memory small(4), large(16);
  EXPECT_FALSE(use_whole(world, small.address, 4 * page)) << "it does not pay";
  EXPECT_TRUE(use_whole(world, large.address, 16 * page));
  EXPECT_EQ(world.registrar.pinned_bytes(), 0u) << "for that use alone";
  EXPECT_TRUE(use_whole(world, large.address, 16 * page));
  EXPECT_EQ(world.registrar.pinned_bytes(), 16 * page) << "it came again";
  EXPECT_TRUE(use_whole(world, small.address, 4 * page)) << "this, too";
}

// Others may change it, so it never stays registered, however often it comes.
TEST(RegionChoice, SharedMemoryIsRegisteredForEachUseWhereItPays) {
  World& world = new_world();
  world.registrar.pays_from = 8 * page;
  world.registrar.least = SIZE_MAX;
  void* const shared =
      mmap(nullptr, 16 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<std::uintptr_t>(shared);
  for (unsigned turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(use_whole(world, address, 16 * page));
    EXPECT_EQ(world.registrar.sizes.size(), turn + 1);
    EXPECT_EQ(world.registrar.pinned_bytes(), 0u);
    EXPECT_FALSE(use_whole(world, address, 4 * page)) << "it does not pay";
  }
  munmap(shared, 16 * page);
}

// New memory at an address is no memory that comes again.
TEST(RegionChoice, NewMemoryComesForTheFirstTime) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  world.registrar.pays_from = 8 * page;
  world.registrar.least = SIZE_MAX;
  const Memory memory(16);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(use_whole(world, memory.address, 16 * page));
    EXPECT_EQ(world.registrar.pinned_bytes(), 0u);
    memory.renew();
  }
}

TEST(RegionChoice, NorIsItRegisteredWhereItDoesNotPay) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  world.registrar.least = SIZE_MAX;
  const Memory memory(256);
  for (int turn = 0; turn < 4; ++turn) {
    EXPECT_FALSE(use_whole(world, memory.address, memory.bytes));
    memory.renew();
  }
  EXPECT_FALSE(use_whole(world, memory.address, memory.bytes));
  EXPECT_TRUE(use_whole(world, memory.address, memory.bytes)) << "it came again";
}

}  // namespace
}  // namespace haul
