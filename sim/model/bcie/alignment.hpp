// Alignment within blocks (paper 003, IV-A and figure 8): a destination block is formed of bytes of
// one or two source blocks. Which bytes, and by how much they move, is the same for all blocks but
// those at the ends: four masks of a source block's bytes, each with a shift, are enough for a page
// pair.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "model/bcie/subcopy.hpp"

namespace bcisim {

using ByteMask = std::bitset<1024>;  // a bit for each byte of a block

// Bytes of a source block that go into one destination block: byte i to i + shift.
struct Selection {
  ByteMask mask;
  int shift = 0;
  bool operator==(const Selection&) const = default;
};

class Alignment {
 public:
  // Not for fills.
  Alignment(const Subcopy& pair, unsigned block_bytes);

  // Selections in store: at most four.
  const std::vector<Selection>& selections() const { return selections_; }

  // Which of them takes a source block (physical number) to a destination block that it helps to
  // make.
  const Selection& select(std::uint64_t source_block, std::uint64_t destination_block) const;

  // Forms the index-th destination block: sets in `block` the bytes that the copy writes, from the
  // one or two source blocks of its BlockMove, and leaves the others.
  void form(unsigned index, std::span<const std::span<const std::uint8_t>> sources,
            std::span<std::uint8_t> block) const;

 private:
  // A source block's part that goes into the lower, or into the upper, of its two destination
  // blocks.
  enum Part { lower, upper };
  Selection compute(std::uint64_t source_block, Part part) const;
  unsigned intern(const Selection& selection);
  unsigned row_of(std::uint64_t source_block) const;

  Subcopy pair_;
  unsigned block_bytes_;
  unsigned seam_;  // bytes of a source block from here on go to the upper destination block
  std::uint64_t first_, last_;  // source blocks
  std::vector<Selection> selections_;
  // Into selections_, for each part of the first block, of those between, and of the last.
  std::array<std::array<unsigned, 2>, 3> index_{};
};

}  // namespace bcisim
