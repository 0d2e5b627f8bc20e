// fill_bytes repeats a pattern from dst[0] on, for every level, affinity, width, size and
// alignment.
#include "levels.hpp"

namespace haul::copy {
namespace {

using Fill = EachLevel;

constexpr std::uint64_t pattern = 0x8877665544332211;

// The pattern, over and over.
std::vector<unsigned char> repeated(unsigned pattern_bytes, std::size_t count) {
  std::vector<unsigned char> out(count);
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = static_cast<unsigned char>(pattern >> (8 * (i % pattern_bytes)));
  }
  return out;
}

class FillArena {
 public:
  FillArena(unsigned pattern_bytes, std::size_t largest)
      : pattern_bytes_(pattern_bytes),
        filled_(repeated(pattern_bytes, largest)),
        actual_(largest + 64 + 2 * canary_bytes),
        canaries_(canary_bytes, canary) {}

  void check(Level level, std::size_t shift, std::size_t len, Affinity affinity) {
    unsigned char* dst = actual_.data() + canary_bytes + shift;
    std::memset(dst - canary_bytes, canary, len + 2 * canary_bytes);
    ASSERT_TRUE(fill_bytes_at(level, dst, len, pattern, pattern_bytes_, affinity));
    const bool same = std::memcmp(dst, filled_.data(), len) == 0 &&
                      std::memcmp(dst - canary_bytes, canaries_.data(), canary_bytes) == 0 &&
                      std::memcmp(dst + len, canaries_.data(), canary_bytes) == 0;
    ASSERT_TRUE(same) << level_name(level) << " len " << len << " dst+" << shift
                      << " pattern bytes " << pattern_bytes_ << " affinity "
                      << static_cast<int>(affinity);
  }

 private:
  static constexpr std::size_t canary_bytes = 192;
  static constexpr unsigned char canary = 0xee;
  unsigned pattern_bytes_;
  std::vector<unsigned char> filled_, actual_, canaries_;
};

TEST_P(Fill, every_small_size_and_alignment) {
  for (const unsigned pattern_bytes : {1u, 2u, 4u, 8u}) {
    FillArena arena(pattern_bytes, 400);
    for (const Affinity affinity : all_affinities) {
      for (std::size_t len = 0; len <= 330; ++len) {
        for (std::size_t shift = 0; shift < 64; shift += len % 3 + 3) {
          arena.check(GetParam(), shift, len, affinity);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Fill, large_sizes) {
  std::mt19937_64 random(11);
  for (const unsigned pattern_bytes : {1u, 2u, 4u, 8u}) {
    FillArena arena(pattern_bytes, std::size_t{1} << 20);
    for (const Affinity affinity : all_affinities) {
      for (int i = 0; i < 5 * thoroughness; ++i) {
        const std::size_t len = 1 + random() % (std::size_t{1} << (9 + random() % 12));
        arena.check(GetParam(), random() % 64, len, affinity);
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Fill, testing::Values(Level::portable, Level::avx2, Level::avx512),
                         param_name);

TEST(FillDispatch, takes_the_best_level) {
  std::vector<unsigned char> buffer(100000, 0);
  fill_bytes(buffer.data() + 3, 99990, 0xbeef, 2, Affinity::cacheable);
  EXPECT_EQ(buffer[2], 0);
  EXPECT_EQ(buffer[3], 0xef);
  EXPECT_EQ(buffer[4], 0xbe);
  EXPECT_EQ(buffer[99992], 0xbe);
  EXPECT_EQ(buffer[99993], 0);
  fill_bytes(nullptr, 0, 1, 8, Affinity::non_cacheable);
}

TEST(WidenPattern, replicates_the_low_bytes_and_drops_the_rest) {
  EXPECT_EQ(widen_pattern(0xffffffffffffff5a, 1), 0x5a5a5a5a5a5a5a5au);
  EXPECT_EQ(widen_pattern(0xffffffffffff1234, 2), 0x1234123412341234u);
  EXPECT_EQ(widen_pattern(0xffffffff12345678, 4), 0x1234567812345678u);
  EXPECT_EQ(widen_pattern(0x0123456789abcdef, 8), 0x0123456789abcdefu);
}

}  // namespace
}  // namespace haul::copy
