// What of a process's memory is shared with others.
#include "base/os/pages/mappings.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "base/os/os.hpp"

namespace haul {
namespace {

struct Found {
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges;
  bool holds(const void* at) const {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    for (const auto& [begin, end] : ranges) {
      if (address >= begin && address < end) return true;
    }
    return false;
  }
};

Found shared_now() {
  Found found;
  EXPECT_TRUE(os::for_each_mapping(
      [](const os::Mapping& mapping, void* context) {
        if (mapping.shared)
          static_cast<Found*>(context)->ranges.emplace_back(mapping.begin, mapping.end);
      },
      &found));
  return found;
}

TEST(Mappings, SharedOnesAreFoundAmongManyOthers) {
  constexpr std::size_t bytes = 3 * 4096;
  std::vector<void*> many;
  for (int i = 0; i < 300; ++i) {
    // Neighbours that the kernel cannot join, so that the text is longer than a piece of it.
    many.push_back(mmap(nullptr, bytes, i % 2 == 0 ? PROT_READ : PROT_READ | PROT_WRITE,
                        (i % 50 == 7 ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(many.back(), MAP_FAILED);
  }
  const Found found = shared_now();
  for (int i = 0; i < 300; ++i) {
    auto* const at = static_cast<char*>(many[static_cast<std::size_t>(i)]);
    EXPECT_EQ(found.holds(at), i % 50 == 7);
    EXPECT_EQ(found.holds(at + bytes - 1), i % 50 == 7);
  }
  for (void* at : many) munmap(at, bytes);
  int on_stack = 0;
  EXPECT_FALSE(shared_now().holds(&on_stack));
}

TEST(Mappings, CodeLiesInItsFile) {
  struct Search {
    std::uintptr_t address;
    os::Mapping found;
  } search{reinterpret_cast<std::uintptr_t>(&shared_now), {}};
  EXPECT_TRUE(os::for_each_mapping(
      [](const os::Mapping& mapping, void* context) {
        auto& [address, found] = *static_cast<Search*>(context);
        if (mapping.begin <= address && address < mapping.end) found = mapping;
      },
      &search));
  char program[256];
  os::program_path(program, sizeof program);
  EXPECT_STREQ(search.found.name, program);
  EXPECT_EQ(search.found.offset % 4096, 0u);
  EXPECT_NE(search.found.offset, 0u);  // the headers are mapped apart from the code
  EXPECT_FALSE(search.found.shared);
}

}  // namespace
}  // namespace haul
