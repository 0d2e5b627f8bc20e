// Whose memory a range is, and which of its pages hold something.
#include "base/machine/page_facts.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/machine/cpu.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/os/os.hpp"
#include "sizes.hpp"

namespace haul::os {
namespace {

class PageFacts : public testing::Test {
 protected:
  std::uintptr_t map(std::size_t count, int rights, int flags, int file = -1) {
    void* const at = mmap(nullptr, count * page, rights, flags, file, 0);
    EXPECT_NE(at, MAP_FAILED);
    return reinterpret_cast<std::uintptr_t>(at);
  }
};

// (A kernel that cannot tell says that nothing is private.)
TEST_F(PageFacts, OnlyPrivateMemoryOfNoFileIsPrivate) {
  const std::uintptr_t mine = map(8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (!is_private_memory(mine, mine + 8 * page, true))
    GTEST_SKIP() << "this kernel shows no single mappings";
  const std::uintptr_t others = map(8, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
  EXPECT_FALSE(is_private_memory(others, others + page, false));
  const int file = memfd_create("page_facts", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, 8 * page), 0);
  const std::uintptr_t files = map(8, PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
  EXPECT_FALSE(is_private_memory(files, files + page, false));
  close_fd(file);
  // (A sanitizer keeps local variables elsewhere.)
  const std::uintptr_t stack = stack_pointer() & ~(page - 1);
  EXPECT_FALSE(is_private_memory(stack, stack + page, false));
  mprotect(reinterpret_cast<void*>(mine + 4 * page), page, PROT_READ);
  EXPECT_TRUE(is_private_memory(mine, mine + 8 * page, false));
  EXPECT_FALSE(is_private_memory(mine, mine + 8 * page, true));
  EXPECT_TRUE(is_private_memory(mine, mine + 4 * page, true));
  munmap(reinterpret_cast<void*>(mine + 6 * page), page);
  EXPECT_FALSE(is_private_memory(mine, mine + 8 * page, false));
}

// (Before Linux 6.11 both are the list.)
TEST_F(PageFacts, TheListOfMappingsSaysTheSame) {
  const std::uintptr_t mine = map(16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  const auto change = [&](std::size_t at, int rights) {
    mprotect(reinterpret_cast<void*>(mine + at * page), page, rights);
  };
  change(3, PROT_READ);
  change(6, PROT_NONE);
  munmap(reinterpret_cast<void*>(mine + 10 * page), page);
  ASSERT_NE(mmap(reinterpret_cast<void*>(mine + 13 * page), page, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  unsigned private_ranges = 0;
  for (std::uintptr_t begin = 0; begin < 16; ++begin) {
    for (std::uintptr_t end = begin + 1; end <= 16; ++end) {
      PageRun one, other;
      const bool is = private_mappings(mine + begin * page, mine + end * page, &one);
      ASSERT_EQ(private_mappings_by_list(mine + begin * page, mine + end * page, &other), is)
          << begin << " to " << end;
      if (!is) continue;
      ++private_ranges;
      EXPECT_EQ(one.begin, other.begin);
      EXPECT_EQ(one.end, other.end);
    }
  }
  // Of 6, 3, 2 and 2 pages in a row.
  EXPECT_EQ(private_ranges, 21u + 6u + 3u + 3u);
}

TEST_F(PageFacts, FindsRunsOfPagesThatAreThere) {
  const std::uintptr_t begin = map(600, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  const std::uintptr_t end = begin + 600 * page;
  const int file = open_page_map();
  ASSERT_GE(file, 0);
  PageRun run;
  EXPECT_FALSE(first_present(file, begin, end, &run));
  for (const std::uintptr_t nth : {7u, 8u, 9u, 599u})
    *reinterpret_cast<char*>(begin + nth * page) = 1;
  ASSERT_TRUE(first_present(file, begin, end, &run));
  if (run.begin == begin) GTEST_SKIP() << "this kernel shows no single pages";
  EXPECT_EQ(run.begin, begin + 7 * page);
  EXPECT_EQ(run.end, begin + 10 * page);
  ASSERT_TRUE(first_present(file, run.end, end, &run));
  EXPECT_EQ(run.begin, begin + 599 * page);
  EXPECT_FALSE(first_present(file, begin + 10 * page, begin + 599 * page, &run));
  close_fd(file);
}

}  // namespace
}  // namespace haul::os
