// The engine `uffd` on pages that this test watches and nobody serves: it must fill what is missing
// and nothing else, and say how far it came.
#include "engine/uffd/uffd.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/userfault.hpp"
#include "engine/registry.hpp"
#include "sizes.hpp"

namespace haul {
namespace {

constexpr std::size_t pages = 64;

class UserfaultEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    fd_ = os::open_userfault();
    if (fd_ < 0)
      GTEST_SKIP() << "the kernel does not let this user have a userfaultfd that serves it";
    void* const at =
        mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(at, MAP_FAILED);
    to_ = static_cast<unsigned char*>(at);
    for (std::size_t i = 0; i < from_.size(); ++i)
      from_[i] = static_cast<unsigned char>(i * 7 + i / page);
    name_userfault(fd_, true, nullptr);
  }
  void TearDown() override {
    if (fd_ >= 0) os::close_fd(fd_);
    name_userfault(-1, false, nullptr);
    if (to_ != nullptr) munmap(to_, pages * page);
  }
  void watch(std::size_t first, std::size_t count) {
    ASSERT_EQ(os::watch(fd_, address(first), count * page, os::WatchFor::missing), 0);
  }
  std::uintptr_t address(std::size_t nth) const {
    return reinterpret_cast<std::uintptr_t>(to_) + nth * page;
  }
  Outcome move(std::size_t first, std::size_t count) {
    Piece piece;
    piece.dst = address(first);
    piece.src = reinterpret_cast<std::uintptr_t>(from_.data()) + first * page;
    piece.length = count * page;
    Outcome outcome;
    EXPECT_EQ(uffd_engine().submit(piece, 0, outcome), Submitted::finished);
    return outcome;
  }
  // (Only of pages that are there: nobody would serve others.)
  bool is_right(std::size_t first, std::size_t count) const {
    return std::memcmp(to_ + first * page, from_.data() + first * page, count * page) == 0;
  }

  int fd_ = -1;
  unsigned char* to_ = nullptr;
  std::vector<unsigned char> from_ = std::vector<unsigned char>(pages * page);
};

TEST_F(UserfaultEngineTest, FillsWhatIsMissingAndLeavesTheRest) {
  std::memset(to_ + 3 * page, 0xab, page);
  std::memset(to_ + 40 * page, 0xab, 2 * page);
  watch(0, pages);
  const Outcome outcome = move(0, pages);
  EXPECT_EQ(outcome.code, Code::ok);
  EXPECT_EQ(outcome.good_bytes, pages * page);
  EXPECT_TRUE(is_right(0, 3) && is_right(4, 36) && is_right(42, 22));
  for (const std::size_t kept : {std::size_t{3}, std::size_t{40}, std::size_t{41}})
    EXPECT_EQ(to_[kept * page + 5], 0xab);
}

TEST_F(UserfaultEngineTest, WhatIsUnmappedIsNobodysLoss) {
  watch(0, pages);
  // The kernel holds whoever unmaps it until that has been read.
  std::thread program([&] { munmap(to_ + 20 * page, 9 * page); });
  os::FaultEvent event;
  while (!os::next_event(fd_, &event)) os::yield();
  program.join();
  EXPECT_EQ(event.kind, os::FaultEvent::Kind::unmapped);
  EXPECT_EQ(event.begin, address(20));
  EXPECT_EQ(event.end, address(29));
  EXPECT_EQ(move(0, pages).code, Code::ok);
  EXPECT_TRUE(is_right(0, 20) && is_right(29, 35));
}

TEST_F(UserfaultEngineTest, SaysHowFarASourceCouldBeRead) {
  watch(0, pages);
  void* const hole =
      mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(hole, MAP_FAILED);
  mprotect(static_cast<char*>(hole) + 4 * page, 4 * page, PROT_NONE);
  Piece piece;
  piece.dst = address(0);
  piece.src = reinterpret_cast<std::uintptr_t>(hole);
  piece.length = 8 * page;
  Outcome outcome;
  uffd_engine().submit(piece, 0, outcome);
  EXPECT_EQ(outcome.code, Code::fault);
  EXPECT_EQ(outcome.good_bytes, 4 * page);
  munmap(hole, 8 * page);
}

TEST_F(UserfaultEngineTest, FillsWithAPattern) {
  for (const std::uint64_t pattern :
       {std::uint64_t{0}, std::uint64_t{0x7777777777777777}, std::uint64_t{0x0123456789abcdef}}) {
    void* const again = mmap(to_, pages * page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ASSERT_EQ(again, to_);
    std::memset(to_ + 9 * page, 0xab, page);
    watch(0, pages);
    Piece piece;
    piece.operation = Operation::fill;
    piece.dst = address(0);
    piece.pattern = pattern;
    piece.length = pages * page;
    Outcome outcome;
    EXPECT_EQ(uffd_engine().submit(piece, 0, outcome), Submitted::finished);
    EXPECT_EQ(outcome.code, Code::ok);
    EXPECT_EQ(outcome.good_bytes, pages * page);
    for (std::size_t at = 0; at < pages * page; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, to_ + at, sizeof word);
      ASSERT_EQ(word, at / page == 9 ? 0xabababababababab : pattern);
    }
    os::unwatch(fd_, address(0), pages * page);
  }
}

TEST_F(UserfaultEngineTest, RefusesWhatIsNotWholePages) {
  watch(0, pages);
  Piece piece;
  piece.dst = address(0) + 1;
  piece.src = reinterpret_cast<std::uintptr_t>(from_.data());
  piece.length = page;
  Outcome outcome;
  uffd_engine().submit(piece, 0, outcome);
  EXPECT_EQ(outcome.code, Code::not_supported);
  EXPECT_EQ(outcome.good_bytes, 0u);
}

// A call that begins and ends within huge pages and fills three.
class HugeBlocksTest : public testing::Test {
 protected:
  static constexpr std::size_t huge = 2 << 20, length = 3 * huge + 6 * page;

  void SetUp() override {
    fd_ = os::open_userfault();
    if (fd_ < 0)
      GTEST_SKIP() << "the kernel does not let this user have a userfaultfd that serves it";
    map_ = os::map_anonymous(6 * huge);
    ASSERT_NE(map_, nullptr);
    first_block_ = (reinterpret_cast<std::uintptr_t>(map_) + 2 * huge - 1) & ~(huge - 1);
    to_ = first_block_ - 2 * page;
    for (std::size_t i = 0; i < from_.size(); ++i)
      from_[i] = static_cast<unsigned char>(i * 13 + i / page);
    name_userfault(fd_, true, nullptr);
  }
  void TearDown() override {
    if (fd_ >= 0) os::close_fd(fd_);
    name_userfault(-1, false, nullptr);
    if (map_ != nullptr) os::unmap(map_, 6 * huge);
  }
  unsigned char* at(std::size_t offset) const {
    return reinterpret_cast<unsigned char*>(to_ + offset);
  }
  Outcome move() {
    EXPECT_EQ(os::watch(fd_, to_, length, os::WatchFor::missing), 0);
    Piece piece;
    piece.dst = to_;
    piece.src = reinterpret_cast<std::uintptr_t>(from_.data());
    piece.length = length;
    Outcome outcome;
    EXPECT_EQ(uffd_engine().submit(piece, 0, outcome), Submitted::finished);
    return outcome;
  }
  std::int64_t huge_bytes() const {
    const int map = os::open_page_map();
    const std::int64_t bytes = os::huge_bytes(map, first_block_, 3 * huge);
    os::close_fd(map);
    return bytes;
  }

  int fd_ = -1;
  void* map_ = nullptr;
  std::uintptr_t first_block_ = 0, to_ = 0;
  std::vector<unsigned char> from_ = std::vector<unsigned char>(length);
};

TEST_F(HugeBlocksTest, AreProvidedWhereTheCopyFillsThem) {
  const Outcome outcome = move();
  EXPECT_EQ(outcome.code, Code::ok);
  EXPECT_EQ(outcome.good_bytes, length);
  EXPECT_EQ(std::memcmp(at(0), from_.data(), length), 0);
  if (huge_bytes() == 0) GTEST_SKIP() << "the kernel gives no huge pages now";
  EXPECT_EQ(huge_bytes(), static_cast<std::int64_t>(3 * huge));
}

TEST_F(HugeBlocksTest, AreProvidedToFills) {
  // (What a place held before must not show in the next fill with zero.)
  for (const int value : {0x5a, 0, 0xff, 0}) {
    ASSERT_EQ(os::watch(fd_, to_, length, os::WatchFor::missing), 0);
    Piece piece;
    piece.operation = Operation::fill;
    piece.dst = to_;
    piece.pattern = static_cast<unsigned>(value) * 0x0101010101010101u;
    piece.length = length;
    Outcome outcome;
    EXPECT_EQ(uffd_engine().submit(piece, 0, outcome), Submitted::finished);
    EXPECT_EQ(outcome.code, Code::ok);
    EXPECT_EQ(outcome.good_bytes, length);
    for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(*at(i), value) << i;
    if (huge_bytes() != 0) {
      EXPECT_EQ(huge_bytes(), static_cast<std::int64_t>(3 * huge));
    }
    os::unwatch(fd_, to_, length);
    os::drop_own_pages(map_, 6 * huge);
  }
}

// The destination's own page lies aside, and comes back as it is: no new one may be made here.
TEST_F(HugeBlocksTest, BringsTheVeryPageThatLiesAside) {
  static HaulPrivateAsides asides;
  void* const window = os::map_anonymous(2 * huge);
  ASSERT_NE(window, nullptr);
  const std::uintptr_t place = (reinterpret_cast<std::uintptr_t>(window) + huge - 1) & ~(huge - 1);
  name_userfault(fd_, false, nullptr);
  name_asides(asides);
  os::want_huge_pages(reinterpret_cast<void*>(first_block_), huge);
  auto* const block = reinterpret_cast<unsigned char*>(first_block_);
  for (const bool fills : {false, true}) {
    std::memset(block, 0xab, huge);
    const std::int64_t before = huge_bytes();
    ASSERT_EQ(os::watch(fd_, first_block_, huge, os::WatchFor::missing), 0);
    ASSERT_EQ(os::watch(fd_, place, huge, os::WatchFor::missing), 0);
    ASSERT_EQ(os::move_pages(fd_, place, first_block_, huge), static_cast<std::int64_t>(huge));
    os::unwatch(fd_, place, huge);
    asides.enter(7, first_block_, 1, place);
    Piece piece;
    piece.operation = fills ? Operation::fill : Operation::copy;
    piece.dst = first_block_;
    piece.src = reinterpret_cast<std::uintptr_t>(from_.data());
    piece.length = huge;
    Outcome outcome;
    EXPECT_EQ(uffd_engine().submit(piece, 0, outcome), Submitted::finished);
    EXPECT_EQ(outcome.good_bytes, huge);
    asides.leave(7);
    os::unwatch(fd_, first_block_, huge);
    for (std::size_t i = 0; i < huge; ++i) ASSERT_EQ(block[i], fills ? 0 : from_[i]);
    EXPECT_EQ(huge_bytes(), before);
    EXPECT_FALSE(os::any_resident(place, huge));
  }
  os::unmap(window, 2 * huge);
}

TEST_F(HugeBlocksTest, ABlockOfWhichAPageIsThereStaysSmall) {
  at(2 * page + huge + 5 * page)[7] = 0xab;
  EXPECT_EQ(move().good_bytes, length);
  EXPECT_EQ(at(2 * page + huge + 5 * page)[7], 0xab);
  std::memcpy(at(2 * page + huge + 5 * page), from_.data() + 2 * page + huge + 5 * page, page);
  EXPECT_EQ(std::memcmp(at(0), from_.data(), length), 0);
  EXPECT_LE(huge_bytes(), static_cast<std::int64_t>(2 * huge));
}

TEST_F(HugeBlocksTest, NoneWhereTheProgramForbidsThem) {
  name_userfault(fd_, false, nullptr);
  EXPECT_EQ(move().good_bytes, length);
  EXPECT_EQ(std::memcmp(at(0), from_.data(), length), 0);
  EXPECT_EQ(huge_bytes(), 0);
}

TEST_F(HugeBlocksTest, ASourceThatCannotBeReadSaysHowFar) {
  void* const source = os::map_anonymous(length);
  ASSERT_NE(source, nullptr);
  std::memset(source, 3, length);
  constexpr std::size_t readable = huge + 9 * page;
  mprotect(static_cast<char*>(source) + readable, page, PROT_NONE);
  ASSERT_EQ(os::watch(fd_, to_, length, os::WatchFor::missing), 0);
  Piece piece;
  piece.dst = to_;
  piece.src = reinterpret_cast<std::uintptr_t>(source);
  piece.length = length;
  Outcome outcome;
  uffd_engine().submit(piece, 0, outcome);
  EXPECT_EQ(outcome.code, Code::fault);
  EXPECT_EQ(outcome.good_bytes, readable);
  for (std::size_t i = 0; i < readable; i += 512) ASSERT_EQ(*at(i), 3);
  os::unmap(source, length);
}

TEST_F(UserfaultEngineTest, WithoutADescriptorNothingIsMoved) {
  name_userfault(-1, false, nullptr);
  EXPECT_EQ(move(0, pages).code, Code::not_supported);
}

}  // namespace
}  // namespace haul
