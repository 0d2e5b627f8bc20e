#include "model/bcie/alignment.hpp"

#include <algorithm>

namespace bcisim {

Alignment::Alignment(const Subcopy& pair, unsigned block_bytes)
    : pair_(pair),
      block_bytes_(block_bytes),
      seam_(
          static_cast<unsigned>((pair.source_physical - pair.destination_physical) % block_bytes)),
      first_(pair.source_physical / block_bytes),
      last_((pair.source_physical + pair.bytes - 1) / block_bytes) {
  // Blocks between the ends are all alike: the second stands for them.
  const std::array<std::uint64_t, 3> rows{first_, std::min(first_ + 1, last_), last_};
  for (unsigned row = 0; row < rows.size(); ++row) {
    for (const Part part : {lower, upper}) {
      const Selection selection = compute(rows[row], part);
      if (selection.mask.any()) index_[row][part] = intern(selection);
    }
  }
}

Selection Alignment::compute(std::uint64_t source_block, Part part) const {
  const std::uint64_t block_begin = source_block * block_bytes_;
  const std::uint64_t begin = std::max(pair_.source_physical, block_begin);
  const std::uint64_t end =
      std::min(pair_.source_physical + pair_.bytes, block_begin + block_bytes_);
  Selection selection;
  selection.shift =
      part == lower ? static_cast<int>(block_bytes_ - seam_) : -static_cast<int>(seam_);
  for (std::uint64_t byte = begin; byte < end; ++byte) {
    const auto at = static_cast<unsigned>(byte - block_begin);
    if ((at >= seam_) == (part == upper)) selection.mask.set(at);
  }
  return selection;
}

unsigned Alignment::intern(const Selection& selection) {
  const auto found = std::find(selections_.begin(), selections_.end(), selection);
  if (found == selections_.end()) {
    selections_.push_back(selection);
    return static_cast<unsigned>(selections_.size() - 1);
  }
  return static_cast<unsigned>(found - selections_.begin());
}

unsigned Alignment::row_of(std::uint64_t source_block) const {
  if (source_block == first_) return 0;
  return source_block == last_ ? 2 : 1;
}

const Selection& Alignment::select(std::uint64_t source_block,
                                   std::uint64_t destination_block) const {
  // The upper part goes where the byte at the seam goes.
  const std::uint64_t seam = source_block * block_bytes_ + seam_;
  const std::uint64_t target =
      (seam - pair_.source_physical + pair_.destination_physical) / block_bytes_;
  return selections_[index_[row_of(source_block)][destination_block == target ? upper : lower]];
}

void Alignment::form(unsigned index, std::span<const std::span<const std::uint8_t>> sources,
                     std::span<std::uint8_t> block) const {
  const BlockMove move = BlockMoves(pair_, block_bytes_)[index];
  ByteMask written;
  std::vector<std::uint8_t> formed(block_bytes_, 0);
  for (unsigned i = 0; i < move.source_count; ++i) {
    const Selection& selection = select(move.sources[i], move.destination);
    for (unsigned byte = 0; byte < block_bytes_; ++byte) {
      if (!selection.mask.test(byte)) continue;
      const auto to = static_cast<unsigned>(static_cast<int>(byte) + selection.shift);
      formed[to] = static_cast<std::uint8_t>(formed[to] | sources[i][byte]);
      written.set(to);
    }
  }
  for (unsigned byte = 0; byte < block_bytes_; ++byte) {
    if (written.test(byte)) block[byte] = formed[byte];
  }
}

}  // namespace bcisim
