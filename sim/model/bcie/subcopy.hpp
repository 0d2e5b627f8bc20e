// Subcopies (paper 003, IV and figure 6): parts of a copy, each with one source page and one
// destination page, and the destination blocks that each makes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "model/bcie/region.hpp"

namespace bcisim {

struct Subcopy {
  bool is_fill = false;
  unsigned bytes = 0;
  std::uint64_t source = 0, destination = 0;                    // virtual
  std::uint64_t source_physical = 0, destination_physical = 0;  // of the same bytes
};

// At most three, since a copy is at most a page long; in the order of addresses.
inline std::vector<Subcopy> subcopies_of(const BulkCopy& copy) {
  std::vector<Subcopy> all;
  Region source = source_of(copy), destination = destination_of(copy);
  while (!destination.empty()) {
    unsigned bytes = destination.on_first_page();
    if (!copy.is_fill) bytes = std::min(bytes, source.on_first_page());
    Subcopy one{copy.is_fill, bytes, 0, destination.begin, 0, destination.physical()};
    if (!copy.is_fill) {
      one.source = source.begin;
      one.source_physical = source.physical();
      source.drop(bytes);
    }
    destination.drop(bytes);
    all.push_back(one);
  }
  return all;
}

// What makes one destination block, or the part of it that the subcopy has.
struct BlockMove {
  std::uint64_t destination = 0;           // physical block number (address / block bytes)
  unsigned offset = 0, bytes = 0;          // what is written in it
  std::array<std::uint64_t, 2> sources{};  // physical block numbers
  unsigned source_count = 0;               // 0 (a fill) to 2
  bool is_shifted = false;                 // source and destination are not aligned alike
};

// The destination blocks of a subcopy, numbered from 0 in the order of addresses.
class BlockMoves {
 public:
  BlockMoves(const Subcopy& subcopy, unsigned block_bytes)
      : subcopy_(subcopy), block_bytes_(block_bytes) {}

  unsigned count() const {
    return static_cast<unsigned>(last_block(subcopy_.destination_physical) -
                                 subcopy_.destination_physical / block_bytes_ + 1);
  }

  BlockMove operator[](unsigned index) const {
    BlockMove move;
    move.destination = subcopy_.destination_physical / block_bytes_ + index;
    const std::uint64_t begin =
        std::max(move.destination * block_bytes_, subcopy_.destination_physical);
    const std::uint64_t end = std::min((move.destination + 1) * block_bytes_,
                                       subcopy_.destination_physical + subcopy_.bytes);
    move.offset = static_cast<unsigned>(begin % block_bytes_);
    move.bytes = static_cast<unsigned>(end - begin);
    if (subcopy_.is_fill) return move;
    const std::uint64_t from = begin - subcopy_.destination_physical + subcopy_.source_physical;
    move.sources[move.source_count++] = from / block_bytes_;
    const std::uint64_t last = (from + move.bytes - 1) / block_bytes_;
    if (last != move.sources[0]) move.sources[move.source_count++] = last;
    move.is_shifted = from % block_bytes_ != move.offset;
    return move;
  }

  // The indices [first, last] of those that a source block (physical number) helps to make.
  struct Range {
    unsigned first, last;
  };
  Range made_from(std::uint64_t source_block) const {
    const std::uint64_t begin = std::max(source_block * block_bytes_, subcopy_.source_physical);
    const std::uint64_t end =
        std::min((source_block + 1) * block_bytes_, subcopy_.source_physical + subcopy_.bytes);
    const auto index = [this](std::uint64_t source) {
      const std::uint64_t destination =
          source - subcopy_.source_physical + subcopy_.destination_physical;
      return static_cast<unsigned>(destination / block_bytes_ -
                                   subcopy_.destination_physical / block_bytes_);
    };
    return {index(begin), index(end - 1)};
  }

 private:
  std::uint64_t last_block(std::uint64_t physical) const {
    return (physical + subcopy_.bytes - 1) / block_bytes_;
  }

  Subcopy subcopy_;
  unsigned block_bytes_;
};

}  // namespace bcisim
