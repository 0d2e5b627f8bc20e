// The second hand moves what it is given, whatever it does of it, and always comes to an end.
#include "service/second_hand.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace haul::service {
namespace {

std::vector<unsigned char> painted(std::size_t bytes, unsigned seed) {
  std::vector<unsigned char> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    all[i] = static_cast<unsigned char>((i * 2654435761u + seed) >> 13);
  return all;
}

Piece copy_piece(void* dst, const void* src, std::size_t bytes) {
  Piece piece;
  piece.dst = reinterpret_cast<std::uintptr_t>(dst);
  piece.src = reinterpret_cast<std::uintptr_t>(src);
  piece.length = piece.whole_bytes = bytes;
  return piece;
}

TEST(SecondHandTest, EverySizeAndShiftArrivesWhole) {
  SecondHand hand(0);
  for (unsigned round = 0; round < 400; ++round) {
    const std::size_t bytes = 100'000 + round * 1237 % 400'000, shift = round * 7 % 97;
    const std::vector<unsigned char> src = painted(bytes + 100, round);
    std::vector<unsigned char> dst(bytes + 200, 1);
    std::atomic<std::uint64_t> word{0};
    Piece piece = copy_piece(dst.data() + shift, src.data() + shift / 2, bytes);
    piece.watermark = Watermark{&word, std::uint64_t{5} << 32, 0, 12};
    const Outcome outcome = hand.move(piece);
    ASSERT_EQ(outcome.code, Code::ok);
    ASSERT_EQ(outcome.good_bytes, bytes);
    ASSERT_EQ(std::memcmp(dst.data() + shift, src.data() + shift / 2, bytes), 0) << round;
    ASSERT_EQ(dst[shift + bytes], 1);
    ASSERT_EQ(word.load(), (std::uint64_t{5} << 32 | bytes >> 12));
  }
}

TEST(SecondHandTest, FillsKeepTheirPhase) {
  SecondHand hand(0);
  for (unsigned round = 0; round < 100; ++round) {
    const std::size_t bytes = 200'001 + round * 1001, shift = round % 13;
    std::vector<unsigned char> dst(bytes + 32, 0);
    Piece piece = copy_piece(dst.data() + shift, nullptr, bytes);
    piece.operation = Operation::fill;
    piece.pattern = 0x0807060504030201u;
    ASSERT_EQ(hand.move(piece).code, Code::ok);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(dst[shift + i], i % 8 + 1) << round;
    ASSERT_EQ(dst[shift + bytes], 0);
  }
}

TEST(SecondHandTest, OverlappingPiecesAreMovedAsOne) {
  SecondHand hand(0);
  for (const std::ptrdiff_t shift : {1, 5000, 200'000, -1, -5000, -200'000}) {
    std::vector<unsigned char> memory = painted(1'000'000, 3);
    const std::vector<unsigned char> before = memory;
    ASSERT_EQ(
        hand.move(copy_piece(memory.data() + 300'000 + shift, memory.data() + 300'000, 400'000))
            .code,
        Code::ok);
    EXPECT_EQ(std::memcmp(memory.data() + 300'000 + shift, before.data() + 300'000, 400'000), 0);
  }
}

// Ending while the hand is about to sleep, or asleep, or amid its spin.
TEST(SecondHandTest, AlwaysEnds) {
  const std::vector<unsigned char> src = painted(300'000, 1);
  std::vector<unsigned char> dst(300'000);
  for (unsigned round = 0; round < 300; ++round) {
    SecondHand hand(0);
    hand.move(copy_piece(dst.data(), src.data(), src.size()));
    const timespec pause{0, static_cast<long>(round % 30) * 10'000};
    nanosleep(&pause, nullptr);
  }
  EXPECT_EQ(dst, src);
}

TEST(SecondHandTest, WithoutAnotherCoreItIsNotMade) {
  SecondHand hand(-1);
  const std::vector<unsigned char> src = painted(300'000, 1);
  std::vector<unsigned char> dst(300'000);
  ASSERT_EQ(hand.move(copy_piece(dst.data(), src.data(), src.size())).code, Code::ok);
  EXPECT_EQ(dst, src);
  EXPECT_EQ(hand.halves(), 0u);
}

}  // namespace
}  // namespace haul::service
