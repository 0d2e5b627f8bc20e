#include "base/machine/pages.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

namespace haul {
namespace {

constexpr std::size_t count = 8;

class Pages : public testing::Test {
 protected:
  ~Pages() override { munmap(reinterpret_cast<void*>(at_), count * os::page_bytes); }
  std::uintptr_t map(int flags, int file = -1) {
    at_ = reinterpret_cast<std::uintptr_t>(
        mmap(nullptr, count * os::page_bytes, PROT_READ | PROT_WRITE, flags, file, 0));
    return at_;
  }
  std::uintptr_t page(std::size_t which) const { return at_ + which * os::page_bytes; }

 private:
  std::uintptr_t at_ = 0;
};

void write_to(std::uintptr_t page) {
  *reinterpret_cast<volatile char*>(page) = 1;
}

TEST_F(Pages, AreResidentOnceTheyAreWritten) {
  map(MAP_PRIVATE | MAP_ANONYMOUS);
  errno = EXDEV;
  EXPECT_FALSE(os::is_resident(page(0)));
  write_to(page(1));
  EXPECT_TRUE(os::is_resident(page(1)));
  EXPECT_FALSE(os::is_resident(page(2)));
  EXPECT_EQ(errno, EXDEV);
}

TEST_F(Pages, AreResidentWhereNothingIsMapped) {
  map(MAP_PRIVATE | MAP_ANONYMOUS);
  munmap(reinterpret_cast<void*>(page(3)), os::page_bytes);
  errno = EXDEV;
  EXPECT_TRUE(os::is_resident(page(3)));
  EXPECT_EQ(errno, EXDEV);
}

TEST_F(Pages, ArePopulatedAsAsked) {
  map(MAP_PRIVATE | MAP_ANONYMOUS);
  if (!os::populate(page(1), 3 * os::page_bytes)) GTEST_SKIP() << "this kernel has no such call";
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(os::is_resident(page(i)), i >= 1 && i < 4) << i;
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(*reinterpret_cast<char*>(page(i)), 0);
}

TEST_F(Pages, ThatMayNotBeWrittenAreNotPopulated) {
  map(MAP_PRIVATE | MAP_ANONYMOUS);
  mprotect(reinterpret_cast<void*>(page(2)), os::page_bytes, PROT_READ);
  errno = EXDEV;
  EXPECT_FALSE(os::populate(page(2), os::page_bytes));
  EXPECT_FALSE(os::is_resident(page(2)));
  munmap(reinterpret_cast<void*>(page(2)), os::page_bytes);
  EXPECT_FALSE(os::populate(page(2), os::page_bytes));
  EXPECT_EQ(errno, EXDEV);
}

TEST_F(Pages, ArePrivateInMemoryOfThisProcessAlone) {
  map(MAP_PRIVATE | MAP_ANONYMOUS);
  EXPECT_FALSE(os::is_private(page(0))) << "not there yet";
  write_to(page(0));
  EXPECT_TRUE(os::is_private(page(0)));
}

TEST_F(Pages, AreNotPrivateInSharedMemory) {
  map(MAP_SHARED | MAP_ANONYMOUS);
  write_to(page(0));
  EXPECT_FALSE(os::is_private(page(0)));
}

TEST_F(Pages, AreNotPrivateInAFile) {
  const int file = memfd_create("pages", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, count * os::page_bytes), 0);
  map(MAP_SHARED, file);
  write_to(page(0));
  EXPECT_FALSE(os::is_private(page(0)));
  close(file);
}

}  // namespace
}  // namespace haul
