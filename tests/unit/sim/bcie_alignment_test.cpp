// Forming destination blocks from source blocks (paper 003, IV-A) against memcpy.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "model/bcie/alignment.hpp"

namespace bcisim::test {
namespace {

// Two regions of memory of two pages each; every byte of the source is another but for wrapping.
class CopiedBytes {
 public:
  CopiedBytes() : source_(2 * page_bytes), target_(2 * page_bytes), expected_(2 * page_bytes) {
    for (unsigned i = 0; i < source_.size(); ++i) {
      source_[i] = static_cast<std::uint8_t>(i * 167 + i / 256 + 1);
    }
  }

  // Physical addresses are indices: the source's from 0, the destination's from 16 pages on.
  void copy(unsigned source, unsigned destination, unsigned bytes, unsigned block_bytes) {
    std::fill(target_.begin(), target_.end(), std::uint8_t{0xEE});
    expected_ = target_;
    std::memcpy(expected_.data() + destination, source_.data() + source, bytes);

    BulkCopy copy;
    copy.source = source;
    copy.destination = base + destination;
    copy.bytes = bytes;
    copy.source_pages = {source / page_bytes, source / page_bytes + 1};
    copy.destination_pages = {(base + destination) / page_bytes,
                              (base + destination) / page_bytes + 1};
    unsigned reads = 0;
    for (const Subcopy& pair : subcopies_of(copy)) {
      const Alignment alignment(pair, block_bytes);
      ASSERT_LE(alignment.selections().size(), 4u);
      const BlockMoves moves(pair, block_bytes);
      for (unsigned i = 0; i < moves.count(); ++i) {
        const BlockMove move = moves[i];
        std::array<std::span<const std::uint8_t>, 2> sources;
        for (unsigned k = 0; k < move.source_count; ++k) {
          sources[k] = std::span(source_).subspan(move.sources[k] * block_bytes, block_bytes);
        }
        reads += move.source_count;
        alignment.form(
            i, std::span(sources).first(move.source_count),
            std::span(target_).subspan(move.destination * block_bytes - base, block_bytes));
        ASSERT_EQ(move.is_shifted, (source - destination) % block_bytes != 0);
      }
    }
    ASSERT_GE(reads * block_bytes, bytes);
    ASSERT_EQ(target_, expected_) << "from " << source << " to " << destination << ", " << bytes
                                  << " bytes, blocks of " << block_bytes;
  }

 private:
  static constexpr std::uint64_t base = 16 * page_bytes;
  std::vector<std::uint8_t> source_, target_, expected_;
};

TEST(Alignment, FormsEveryBlockForEveryAlignmentAndLength) {
  CopiedBytes bytes;
  for (unsigned source = 0; source < 16; ++source) {
    for (unsigned destination = 0; destination < 16; ++destination) {
      for (unsigned count = 1; count <= 70; ++count) bytes.copy(source, destination, count, 16);
    }
  }
}

TEST(Alignment, FormsBlocksOf64Bytes) {
  CopiedBytes bytes;
  for (unsigned source = 0; source < 64; ++source) {
    for (unsigned destination = 0; destination < 64; ++destination) {
      for (const unsigned count : {1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 200u}) {
        bytes.copy(source, destination, count, 64);
      }
    }
  }
}

TEST(Alignment, FormsBlocksAcrossPages) {
  CopiedBytes bytes;
  for (const unsigned block_bytes : {16u, 64u, 256u, 1024u}) {
    for (const unsigned source : {0u, 1u, 3800u, 4000u, 4095u}) {
      for (const unsigned destination : {0u, 7u, 3900u, 4040u, 4095u}) {
        for (const unsigned count : {1u, 90u, 300u, 1460u, 4095u, 4096u}) {
          bytes.copy(source, destination, count, block_bytes);
        }
      }
    }
  }
}

// Figure 8's masks: bytes of a source block from the seam on go to one destination block, those
// before it to the one before.
TEST(Alignment, HasTheMasksOfFigure8) {
  BulkCopy copy;
  copy.source = 8;
  copy.bytes = 256;
  copy.destination = 0x10000;
  copy.source_pages = {0, 0};
  copy.destination_pages = {16, 16};
  const Alignment alignment(subcopies_of(copy)[0], 64);
  const Selection& upper = alignment.select(1, 0x401);
  EXPECT_EQ(upper.mask.count(), 56u);
  EXPECT_FALSE(upper.mask.test(7));
  EXPECT_TRUE(upper.mask.test(8));
  EXPECT_EQ(upper.shift, -8);
  const Selection& lower = alignment.select(1, 0x400);
  EXPECT_EQ(lower.mask.count(), 8u);
  EXPECT_TRUE(lower.mask.test(7));
  EXPECT_EQ(lower.shift, 56);
  EXPECT_EQ(alignment.selections().size(), 2u) << "no block is clipped";
}

}  // namespace
}  // namespace bcisim::test
