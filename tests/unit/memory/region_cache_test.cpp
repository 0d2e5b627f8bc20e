// What is registered, when, and until when: against a registrar that counts, and real changes of
// memory.
#include "memory/region_cache.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <memory>

#include "base/os/userfault.hpp"

namespace haul {
namespace {

constexpr std::size_t page = 4096;

class CountingRegistrar final : public Registrar {
 public:
  struct Range {
    std::uintptr_t begin;
    std::size_t bytes;
  };
  Code pin(std::uintptr_t address, std::size_t bytes, std::uint64_t* region) noexcept override {
    if (pinned_bytes() + bytes > limit) return Code::no_memory;
    *region = ++last;
    regions[last] = {address, bytes};
    sizes.push_back(bytes / page);
    return Code::ok;
  }
  void unpin(std::uint64_t region) noexcept override { EXPECT_EQ(regions.erase(region), 1u); }
  std::size_t pinned_bytes() const {
    std::size_t sum = 0;
    for (const auto& [region, range] : regions) sum += range.bytes;
    return sum;
  }

  bool pays_once(std::size_t bytes) const noexcept override { return bytes >= pays_from; }
  std::size_t least_bytes() const noexcept override { return least; }

  std::size_t limit = SIZE_MAX, pays_from = SIZE_MAX, least = 0;
  std::uint64_t last = 0;
  std::map<std::uint64_t, Range> regions;
  std::vector<std::size_t> sizes;  // in pages
};

// (Listeners are told until the process ends, so caches live as long.)
struct World {
  CountingRegistrar registrar;
  RegionCache cache;
};
World& new_world() {
  constexpr std::size_t most = 16;
  static World* const worlds = new World[most];
  static std::size_t next = 0;
  EXPECT_LT(next, most);
  return worlds[next++];
}

bool changes_are_told() {
  return os::open_memory_events() >= 0;
}

class Memory {
 public:
  // At addresses at which there was none before: what becomes of those is remembered for a second.
  explicit Memory(std::size_t pages) : bytes(pages * page) {
    static std::uintptr_t fresh = 0x2000'0000'0000;
    fresh += 1u << 30;
    address = reinterpret_cast<std::uintptr_t>(mmap(reinterpret_cast<void*>(fresh), bytes,
                                                    PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Memory() { munmap(reinterpret_cast<void*>(address), bytes); }
  // Other memory at its address.
  void renew() const {
    ASSERT_NE(
        mmap(at(0), bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        MAP_FAILED);
  }
  void* at(std::size_t which) const { return reinterpret_cast<void*>(address + which * page); }
  std::uintptr_t address;
  std::size_t bytes;
};

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

std::uint64_t asker = 0;

// One use of memory by a device that need not register it: registered meanwhile?
bool use_whole(World& world, const Memory& memory, std::size_t bytes) {
  RegisteredUse use;
  const Code code =
      world.cache.acquire_whole(world.registrar, memory.address, bytes, ++asker, &use);
  if (code == Code::ok) world.cache.release(use);
  return code == Code::ok;
}

TEST(RegionCache, WhatComesOnceIsRegisteredForThatUseWhereItPays) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  world.registrar.pays_from = 8 * page;
  world.registrar.least = SIZE_MAX;
  const Memory small(4), large(16);
  EXPECT_FALSE(use_whole(world, small, 4 * page)) << "it does not pay";
  EXPECT_TRUE(use_whole(world, large, 16 * page));
  EXPECT_EQ(world.registrar.pinned_bytes(), 0u) << "for that use alone";
  EXPECT_TRUE(use_whole(world, large, 16 * page));
  EXPECT_EQ(world.registrar.pinned_bytes(), 16 * page) << "it came again";
  EXPECT_TRUE(use_whole(world, small, 4 * page)) << "this, too";
}

// New memory at an address is no memory that comes again.
TEST(RegionCache, NewMemoryComesForTheFirstTime) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  world.registrar.pays_from = 8 * page;
  world.registrar.least = SIZE_MAX;
  const Memory memory(16);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(use_whole(world, memory, 16 * page));
    EXPECT_EQ(world.registrar.pinned_bytes(), 0u);
    memory.renew();
  }
}

TEST(RegionCache, NorIsItRegisteredWhereItDoesNotPay) {
  if (!changes_are_told()) GTEST_SKIP() << "no userfaultfd for this user";
  World& world = new_world();
  world.registrar.least = SIZE_MAX;
  const Memory memory(256);
  for (int turn = 0; turn < 4; ++turn) {
    EXPECT_FALSE(use_whole(world, memory, memory.bytes));
    memory.renew();
  }
  EXPECT_FALSE(use_whole(world, memory, memory.bytes));
  EXPECT_TRUE(use_whole(world, memory, memory.bytes)) << "it came again";
}

}  // namespace
}  // namespace haul
