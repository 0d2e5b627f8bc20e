// What the tests of registered regions share: a registrar that counts, and memory that changes.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <map>
#include <vector>

#include "base/os/pages/userfault.hpp"
#include "memory/region_cache.hpp"
#include "sizes.hpp"

namespace haul {

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
  bool unpins_late() const noexcept override { return late; }

  bool late = false;
  std::size_t limit = SIZE_MAX, pays_from = SIZE_MAX, least = 0;
  std::uint64_t last = 0;
  std::map<std::uint64_t, Range> regions;
  std::vector<std::size_t> sizes;  // in pages
};

// (Those that are not closed are told of changes until the process ends, so they live as long.)
struct World {
  CountingRegistrar registrar;
  RegionCache cache;
};
inline World& new_world() {
  constexpr std::size_t most = 32;
  static World* const worlds = new World[most];
  static std::size_t next = 0;
  EXPECT_LT(next, most);
  return worlds[next++];
}

inline bool changes_are_told() {
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

}  // namespace haul
