// What is registered, when, and until when: against a registrar that counts, and real changes of
// memory.
#include "memory/region_cache.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "base/knobs.hpp"
#include "unit/memory/region_support.hpp"

namespace haul {
namespace {

// Registers all of a request's side as a channel does, piece by piece; how many pieces.
unsigned go_through(World& world, std::uintptr_t address, std::size_t bytes) {
  unsigned pieces = 0;
  for (std::size_t at = 0; at < bytes; ++pieces) {
    RegisteredUse use;
    const std::size_t wanted = std::min<std::size_t>(bytes - at, 1u << 20);
    EXPECT_EQ(
        world.cache.acquire(world.registrar, address + at, wanted, at, bytes - at - wanted, &use),
        Code::ok);
    EXPECT_GT(use.bytes, 0u);
    EXPECT_LE(use.bytes, wanted);
    const auto& range = world.registrar.regions.at(use.region);
    EXPECT_LE(range.begin, address + at);
    EXPECT_GE(range.begin + range.bytes, address + at + use.bytes);
    world.cache.release(use);
    at += use.bytes;
  }
  return pieces;
}

TEST(RegionCache, ARequestsFirstPageComesFirstThenAsMuchAgain) {
  World& world = new_world();
  const Memory memory(64);
  go_through(world, memory.address, memory.bytes);
  ASSERT_GE(world.registrar.sizes.size(), 4u);
  EXPECT_EQ(world.registrar.sizes[0], 1u);
  EXPECT_EQ(world.registrar.sizes[1], 1u);
  EXPECT_EQ(world.registrar.sizes[2], 2u);
  EXPECT_EQ(world.registrar.sizes[3], 4u);
}

TEST(RegionCache, WhatComesAgainIsRegisteredInOnePieceAndThenKnown) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  const Memory memory(64);
  go_through(world, memory.address, memory.bytes);
  const std::size_t parts = world.registrar.sizes.size();
  EXPECT_EQ(go_through(world, memory.address, memory.bytes), 1u);
  EXPECT_EQ(world.registrar.sizes.size(), parts + 1);
  EXPECT_EQ(go_through(world, memory.address, memory.bytes), 1u);
  EXPECT_EQ(world.registrar.sizes.size(), parts + 1);
  EXPECT_TRUE(world.cache.holds(memory.address + 17, memory.bytes - 17));
}

TEST(RegionCache, BothSidesAreHadAtOnceWhereBothAreKnown) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  const Memory one(16), other(16);
  RegisteredUse dst, src;
  EXPECT_FALSE(world.cache.acquire_both(one.address, other.address, page, &dst, &src));
  for (unsigned turn = 0; turn < 2; ++turn) go_through(world, one.address, one.bytes);
  EXPECT_FALSE(world.cache.acquire_both(one.address, other.address, page, &dst, &src));
  for (unsigned turn = 0; turn < 2; ++turn) go_through(world, other.address, other.bytes);
  const std::size_t registered = world.registrar.sizes.size();
  ASSERT_TRUE(world.cache.acquire_both(one.address + 5, other.address, page, &dst, &src));
  EXPECT_EQ(world.registrar.regions.at(dst.region).begin, one.address);
  EXPECT_EQ(world.registrar.regions.at(src.region).begin, other.address);
  EXPECT_EQ(dst.bytes, page);
  EXPECT_FALSE(world.cache.acquire_both(one.address, other.address, one.bytes + 1, &dst, &src));
  world.cache.release(dst, &src);
  world.cache.spare();
  EXPECT_TRUE(world.registrar.regions.empty());
  EXPECT_EQ(world.registrar.sizes.size(), registered);
}

struct Change {
  const char* name;
  void (*make)(Memory& memory);
};

class RegionChanges : public testing::TestWithParam<Change> {};

TEST_P(RegionChanges, EndWhatIsRemembered) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  Memory memory(16);
  go_through(world, memory.address, memory.bytes);
  go_through(world, memory.address, memory.bytes);
  ASSERT_TRUE(world.cache.holds(memory.address, memory.bytes));
  GetParam().make(memory);
  for (int turn = 0; turn < 5000 && world.cache.holds(memory.address, memory.bytes); ++turn)
    usleep(1000);
  EXPECT_FALSE(world.cache.holds(memory.address, memory.bytes));
}

INSTANTIATE_TEST_SUITE_P(
    All, RegionChanges,
    testing::Values(Change{"munmap", [](Memory& m) { munmap(m.at(4), page); }},
                    Change{"fixed",
                           [](Memory& m) {
                             mmap(m.at(0), page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
                           }},
                    Change{"mremap",
                           [](Memory& m) {
                             const Memory other(32);
                             mremap(m.at(0), m.bytes, m.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
                                    other.at(0));
                           }},
                    Change{"dontneed",
                           [](Memory& m) { madvise(m.at(3), 2 * page, MADV_DONTNEED); }}),
    [](const auto& change) { return change.param.name; });

TEST(RegionCache, WhatIsGivenBackIsNotRememberedForAWhile) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  const Memory memory(8);
  go_through(world, memory.address, memory.bytes);
  madvise(memory.at(0), memory.bytes, MADV_DONTNEED);
  go_through(world, memory.address, memory.bytes);
  EXPECT_FALSE(world.cache.holds(memory.address, page));
  EXPECT_EQ(world.registrar.pinned_bytes(), 0u);
}

// Others may change it, and nobody tells.
TEST(RegionCache, SharedMemoryIsRegisteredForEachUse) {
  World& world = new_world();
  void* const shared =
      mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  go_through(world, reinterpret_cast<std::uintptr_t>(shared), 8 * page);
  EXPECT_TRUE(world.registrar.regions.empty());
  munmap(shared, 8 * page);
}

TEST(RegionCache, AFullRegistrarIsGivenRoom) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  world.registrar.limit = 40 * page;
  const Memory first(32), second(32);
  go_through(world, first.address, first.bytes);
  go_through(world, second.address, second.bytes);
  EXPECT_LE(world.registrar.pinned_bytes(), world.registrar.limit);
  RegisteredUse use;
  const Memory large(64);
  world.registrar.limit = 0;
  EXPECT_EQ(world.cache.acquire(world.registrar, large.address, page, 0, 0, &use), Code::no_memory);
}

// ---- acquire_lasting(): of memory that is registered in one piece, and stays so, or not at all
// ----

Code acquire_lasting(World& world, std::uintptr_t address, std::size_t wanted, RegisteredUse* use,
                     std::size_t before = 0, std::size_t behind = 0) {
  return world.cache.acquire_lasting(world.registrar, address, wanted, before, behind, use);
}

TEST(RegionCache, WhatLastsIsRegisteredOnceInOnePieceWhateverIsInUse) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  const Memory memory(64);
  RegisteredUse part, whole, again;
  ASSERT_EQ(acquire_lasting(world, memory.address + 17, 3 * page, &part), Code::ok);
  EXPECT_EQ(world.cache.begin_of(part), memory.address);
  ASSERT_EQ(acquire_lasting(world, memory.address + 17, 60 * page, &whole), Code::ok);
  EXPECT_NE(part.region, whole.region);
  ASSERT_EQ(acquire_lasting(world, memory.address + 5 * page + 1, 2 * page, &again), Code::ok);
  EXPECT_EQ(again.region, whole.region);
  EXPECT_EQ(world.cache.begin_of(again), memory.address);
  EXPECT_EQ(world.registrar.regions.size(), 2u);
  world.cache.release(part);  // which the other has replaced
  EXPECT_EQ(world.registrar.regions.size(), 1u);
  world.cache.release(whole);
  world.cache.release(again);
  EXPECT_EQ(world.registrar.regions.size(), 1u);
  EXPECT_TRUE(world.cache.holds(memory.address, 60 * page));
}

TEST(RegionCache, PartsThatShareAPageStayBesideEachOther) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  const Memory memory(65);
  constexpr std::size_t part = 8 * page, all = 64 * page;
  for (unsigned turn = 0; turn < 2; ++turn) {
    for (std::size_t at = 0; at < all; at += part) {
      RegisteredUse use;
      ASSERT_EQ(acquire_lasting(world, memory.address + 100 + at, part, &use, at, all - at - part),
                Code::ok);
      EXPECT_EQ(use.bytes, part);
      world.cache.release(use);
    }
    // 8 pages, as many, then as many as before each time.
    EXPECT_EQ(world.registrar.sizes.size(), 4u);
  }
}

TEST(RegionCache, WhatCannotLastIsNotRegisteredToLast) {
  World& world = new_world();
  RegisteredUse use;
  void* const shared =
      mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(acquire_lasting(world, reinterpret_cast<std::uintptr_t>(shared), page, &use), Code::ok);
  munmap(shared, 8 * page);
  const Memory memory(8);
  setenv("HAUL_MEMORY_REGISTERED_BYTES", "4096", 1);
  reread_knobs();
  EXPECT_NE(acquire_lasting(world, memory.address, 2 * page, &use), Code::ok);
  setenv("HAUL_MEMORY_REGISTER", "overlapped", 1);
  reread_knobs();
  EXPECT_NE(acquire_lasting(world, memory.address, page, &use), Code::ok);
  unsetenv("HAUL_MEMORY_REGISTER");
  unsetenv("HAUL_MEMORY_REGISTERED_BYTES");
  reread_knobs();
  EXPECT_TRUE(world.registrar.sizes.empty());
}

TEST(RegionCache, TheBudgetHoldsOnceNothingIsInUse) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  setenv("HAUL_MEMORY_REGISTERED_BYTES", "40K", 1);
  reread_knobs();
  const Memory memory(64);
  RegisteredUse uses[8];
  for (std::size_t i = 0; i < 8; ++i)
    ASSERT_EQ(acquire_lasting(world, memory.address + i * 8 * page, 8 * page, &uses[i]), Code::ok);
  EXPECT_EQ(world.registrar.pinned_bytes(), 64 * page);
  for (const RegisteredUse& use : uses) world.cache.release(use);
  EXPECT_EQ(world.registrar.pinned_bytes(), 8 * page);
  unsetenv("HAUL_MEMORY_REGISTERED_BYTES");
  reread_knobs();
}

TEST(RegionCache, MoreRegionsThanItHasRoomForAreRefusedWhileAllAreInUse) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  const Memory memory(600);
  std::vector<RegisteredUse> uses;
  RegisteredUse use;
  while (acquire_lasting(world, memory.address + 2 * uses.size() * page, page, &use) == Code::ok) {
    uses.push_back(use);
    ASSERT_LT(uses.size(), 300u);
  }
  EXPECT_EQ(uses.size(), world.registrar.regions.size());
  world.cache.release(uses.front());
  uses.erase(uses.begin());
  ASSERT_EQ(acquire_lasting(world, memory.address + 599 * page, page, &use), Code::ok);
  world.cache.release(use);
  for (const RegisteredUse& one : uses) world.cache.release(one);
}

// A registrar that unpins late has what changed unpinned by tidy().
TEST(RegionCache, WhatIsUnpinnedLateIsUnpinnedByTidy) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  world.registrar.late = true;
  const Memory memory(16);
  RegisteredUse use;
  ASSERT_EQ(acquire_lasting(world, memory.address, memory.bytes, &use), Code::ok);
  world.cache.release(use);
  munmap(memory.at(3), page);
  for (int turn = 0; turn < 5000 && world.cache.holds(memory.address, page); ++turn) usleep(1000);
  EXPECT_EQ(world.registrar.regions.size(), 1u);
  for (int turn = 0; turn < 5000 && !world.registrar.regions.empty(); ++turn) {
    world.cache.tidy();
    usleep(1000);
  }
  EXPECT_TRUE(world.registrar.regions.empty());
}

// Caches come and go, more of them than can listen at once, while memory changes.
TEST(RegionCache, OneThatIsClosedHasUnpinnedAllAndIsToldNothing) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  const Memory memory(16);
  std::atomic<bool> over{false};
  std::thread changer([&] {
    while (!over) {
      const Memory passing(4);
      bool settles = false;
      watch_changes(passing.address, passing.bytes, &settles);
    }
  });
  for (unsigned turn = 0; turn < 500; ++turn) {
    // (Who told it of changes once it is closed would find nothing there.)
    void* const place =
        mmap(nullptr, sizeof(World), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    World* const world = new (place) World;
    RegisteredUse use;
    const Code code = acquire_lasting(*world, memory.address, memory.bytes, &use);
    EXPECT_TRUE(code == Code::ok || code == Code::timed_out) << describe(code);
    if (code == Code::ok) {
      world->cache.release(use);
      EXPECT_EQ(world->registrar.regions.size(), 1u);
    }
    world->cache.close();
    EXPECT_TRUE(world->registrar.regions.empty());
    world->~World();
    munmap(place, sizeof(World));
  }
  over = true;
  changer.join();
}

TEST(RegionCache, OneThatIsAbandonedInAChildLeavesRegionsToTheParent) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  const Memory memory(16);
  RegisteredUse use;
  ASSERT_EQ(acquire_lasting(world, memory.address, memory.bytes, &use), Code::ok);
  const pid_t child = fork();
  if (child == 0) {
    world.cache.abandon();
    _exit(world.registrar.regions.size() == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  world.cache.release(use);
  EXPECT_TRUE(world.cache.holds(memory.address, memory.bytes));
}

}  // namespace
}  // namespace haul
