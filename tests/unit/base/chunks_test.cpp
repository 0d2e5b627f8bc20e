// Chunks: every byte in exactly one, block-aligned, in order; and the inverse lookup.
#include "base/chunks.hpp"

#include <gtest/gtest.h>

#include <random>

using haul::Chunks;

namespace {

void expect_sound(const Chunks& chunks) {
  ASSERT_GE(chunks.count(), 1u);
  ASSERT_LE(chunks.count(), Chunks::max_count);
  ASSERT_EQ(chunks.begin(0), 0u);
  ASSERT_EQ(chunks.end(chunks.count() - 1), chunks.length);
  for (unsigned i = 0; i < chunks.count(); ++i) {
    ASSERT_LT(chunks.begin(i), chunks.end(i)) << "chunk " << i << " of " << chunks.length;
    ASSERT_EQ(chunks.begin(i) % (std::size_t{1} << chunks.block_log2), 0u);
    ASSERT_EQ(chunks.holding(chunks.begin(i)), i);
    ASSERT_EQ(chunks.holding(chunks.end(i) - 1), i);
  }
}

TEST(Chunks, CoverEveryLengthExactlyOnce) {
  std::mt19937_64 random(20261120);
  for (int run = 0; run < 20000; ++run) {
    const auto block_log2 = static_cast<std::uint32_t>(6 + random() % 15);
    const std::size_t length = 1 + random() % (std::size_t{1} << (8 + random() % 33));
    const std::size_t minimum = std::size_t{1} << (6 + random() % 15);
    const std::size_t unit_minimum = std::size_t{1} << (6 + random() % 15);
    expect_sound(Chunks::cut(length, unit_minimum, minimum, block_log2));
    if (HasFatalFailure()) return;
  }
}

TEST(Chunks, ASmallRequestIsOneChunk) {
  EXPECT_EQ(Chunks::cut(65535, 65536, 32768, 12).count(), 1u);
  EXPECT_EQ(Chunks::cut(65536, 65536, 32768, 12).count(), 2u);
}

TEST(Chunks, BothEndsTaper) {
  const Chunks chunks = Chunks::cut(64u << 20, 65536, 32768, 12);
  ASSERT_GE(chunks.taper, 2u);
  const auto bytes = [&](unsigned chunk) { return chunks.end(chunk) - chunks.begin(chunk); };
  const unsigned last = chunks.count() - 1;
  EXPECT_LT(bytes(0), bytes(1));
  EXPECT_LT(bytes(last), bytes(last - 1));
  EXPECT_EQ(bytes(0), bytes(last));
  EXPECT_LT(bytes(0), chunks.unit / 8);
  EXPECT_GE(bytes(0), 32768u);
}

TEST(Chunks, MaskHasOneBitAChunk) {
  const Chunks chunks = Chunks::cut(1u << 20, 65536, 32768, 12);
  EXPECT_EQ(static_cast<unsigned>(__builtin_popcount(chunks.mask())), chunks.count());
}

}  // namespace
