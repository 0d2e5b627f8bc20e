// What of a process's memory is shared with others.
#include "base/mappings.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

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
  EXPECT_TRUE(os::for_each_shared_mapping(
      [](std::uintptr_t begin, std::uintptr_t end, void* context) {
        static_cast<Found*>(context)->ranges.emplace_back(begin, end);
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

}  // namespace
}  // namespace haul
