// A watermark's word: a count of blocks that never reaches into the generation.
#include <gtest/gtest.h>

#include "engine/engine.hpp"

namespace haul {
namespace {

constexpr std::uint64_t generation_bits = std::uint64_t{7} << 32;

TEST(WatermarkWord, CountsWholeBlocksFromTheChunksFirstByte) {
  std::atomic<std::uint64_t> word{0};
  const Watermark watermark{&word, generation_bits, 4096, 12};
  watermark.publish(2 * 4096 + 1);
  EXPECT_EQ(word.load(), generation_bits | 3);
}

// 256 GiB of one chunk in the smallest blocks there are. The count used to carry into the
// generation, so that the tenancy seemed over.
TEST(WatermarkWord, StaysAtItsLargestCountBeyond) {
  std::atomic<std::uint64_t> word{0};
  const Watermark watermark{&word, generation_bits, 0, 6};
  constexpr std::size_t full = std::size_t{256} << 30;
  watermark.publish(full - 64);
  EXPECT_EQ(word.load(), generation_bits | 0xffff'ffffu);
  watermark.publish(full);
  EXPECT_EQ(word.load(), generation_bits | 0xffff'ffffu);
  watermark.publish(4 * full);
  EXPECT_EQ(word.load(), generation_bits | 0xffff'ffffu);
}

TEST(WatermarkWord, OfNobodyIsNotWritten) {
  const Watermark nobody;
  nobody.publish(4096);
}

}  // namespace
}  // namespace haul
