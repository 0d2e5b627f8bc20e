// The engine `procmem` on memory whose rights this test has taken: it must write there, and say how
// far it came where there is nothing.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "base/machine/huge_pages.hpp"
#include "base/os/pages/own_memory.hpp"
#include "engine/registry.hpp"
#include "sizes.hpp"

namespace haul {
namespace {

constexpr std::size_t bytes = std::size_t{4} << 20;

class ProcmemEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!procmem_engine().status().available)
      GTEST_SKIP() << "this process may not write to its own /proc/self/mem";
    void* const at =
        mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    mapped_ = at;
    constexpr std::uintptr_t huge = os::huge_page_bytes;
    to_ = (reinterpret_cast<std::uintptr_t>(at) + huge - 1) & ~(huge - 1);
    for (std::size_t i = 0; i < from_.size(); ++i)
      from_[i] = static_cast<unsigned char>(i * 7 + i / page);
  }
  void TearDown() override {
    if (mapped_ != nullptr) munmap(mapped_, 2 * bytes);
  }
  unsigned char* to() const { return reinterpret_cast<unsigned char*>(to_); }
  Outcome move(std::size_t offset, std::size_t length) {
    Piece piece;
    piece.checked = true;
    piece.dst = to_ + offset;
    piece.src = reinterpret_cast<std::uintptr_t>(from_.data()) + offset;
    piece.length = length;
    Outcome outcome;
    EXPECT_EQ(procmem_engine().submit(piece, 0, outcome), Submitted::finished);
    return outcome;
  }
  void moves_into_forbidden_pages() {
    ASSERT_EQ(os::set_rights(to_, bytes, os::MemoryRights::none), 0);
    EXPECT_FALSE(os::may_touch(to_ + page, false));
    const Outcome outcome = move(100, bytes - 200);
    EXPECT_EQ(outcome.code, Code::ok);
    EXPECT_EQ(outcome.good_bytes, bytes - 200);
    EXPECT_FALSE(os::may_touch(to_ + page, false));
    ASSERT_EQ(os::set_rights(to_, bytes, os::MemoryRights::read_write), 0);
    EXPECT_TRUE(os::may_touch(to_ + page, true));
    EXPECT_EQ(std::memcmp(to() + 100, from_.data() + 100, bytes - 200), 0);
  }

  void* mapped_ = nullptr;
  std::uintptr_t to_ = 0;
  std::vector<unsigned char> from_ = std::vector<unsigned char>(bytes);
};

TEST_F(ProcmemEngineTest, WritesToMissingPages) {
  moves_into_forbidden_pages();
  EXPECT_EQ(to()[0], 0);
  EXPECT_EQ(to()[bytes - 1], 0);
}

TEST_F(ProcmemEngineTest, WritesToSmallPages) {
  std::memset(to(), 0xab, bytes);
  moves_into_forbidden_pages();
  EXPECT_EQ(to()[99], 0xab);
  EXPECT_EQ(to()[bytes - 100], 0xab);
}

TEST_F(ProcmemEngineTest, WritesToHugePages) {
  std::memset(to(), 0xab, bytes);
  if (os::collapse_to_huge(to_, bytes) != 0) GTEST_SKIP() << "the kernel gives no huge pages now";
  moves_into_forbidden_pages();
  EXPECT_EQ(to()[99], 0xab);
}

TEST_F(ProcmemEngineTest, SaysHowFarItCame) {
  ASSERT_EQ(munmap(to() + bytes / 2, page), 0);
  const Outcome gone = move(0, bytes);
  EXPECT_EQ(gone.code, Code::fault);
  EXPECT_EQ(gone.good_bytes, bytes / 2);
  EXPECT_EQ(std::memcmp(to(), from_.data(), bytes / 2), 0);
  Piece piece;
  piece.dst = to_;
  piece.src = to_ + bytes / 2;
  piece.length = page;
  Outcome outcome;
  procmem_engine().submit(piece, 0, outcome);
  EXPECT_EQ(outcome.code, Code::fault);
  EXPECT_EQ(outcome.good_bytes, 0u);
}

TEST_F(ProcmemEngineTest, LeavesSharedMemoryAlone) {
  void* const shared = mmap(nullptr, bytes, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  to_ = reinterpret_cast<std::uintptr_t>(shared);
  const Outcome outcome = move(0, page);
  EXPECT_EQ(outcome.code, Code::fault);
  EXPECT_EQ(outcome.good_bytes, 0u);
  munmap(shared, bytes);
}

}  // namespace
}  // namespace haul
