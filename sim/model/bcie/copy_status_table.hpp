// The copy status table (CST; paper 003, IV and figure 7): an entry for each page pair under way,
// with the progress of its blocks.
#pragma once

#include <bitset>
#include <vector>

#include "model/bcie/subcopy.hpp"

namespace bcisim {

// A bit for each block of a page: 4 to 256 of them.
inline constexpr unsigned most_page_blocks = page_bytes / 16;
using BlockBits = std::bitset<most_page_blocks>;

struct StatusEntry {
  bool valid = false;
  Subcopy pair;
  BlockBits source_mask, destination_mask;          // blocks that belong to the pair
  BlockBits source_progress, destination_progress;  // CPBV: 1, copied

  bool complete() const {
    return source_progress == source_mask && destination_progress == destination_mask;
  }
};

class CopyStatusTable {
 public:
  CopyStatusTable(unsigned entries, unsigned block_bytes);

  bool has_room() const { return order_.size() < entries_.size(); }
  // The entry's index. Pairs come in the order of addresses; has_room().
  unsigned allocate(const Subcopy& pair);
  // The index-th destination block of the entry's pair is copied. A source block is when all that
  // is made from it is.
  void copied(unsigned entry, unsigned index);
  // The oldest pair is complete: it may leave, and the CSR be bumped. Younger ones wait for that.
  bool oldest_complete() const { return !order_.empty() && entries_[order_.front()].complete(); }
  Subcopy deallocate_oldest();
  void clear();

  enum class Side { source, destination };
  // Of [physical, physical + bytes): how many of the bytes are in blocks of a side that are copied.
  unsigned copied_bytes(Side side, std::uint64_t physical, unsigned bytes) const;

  const StatusEntry& entry(unsigned index) const { return entries_[index]; }
  unsigned block_bytes() const { return block_bytes_; }

 private:
  unsigned block_of(std::uint64_t physical) const {
    return static_cast<unsigned>(physical % page_bytes / block_bytes_);
  }
  BlockBits mask_of(std::uint64_t physical, unsigned bytes) const;

  unsigned block_bytes_;
  std::vector<StatusEntry> entries_;
  std::vector<unsigned> order_;  // of the valid ones, the oldest first
};

}  // namespace bcisim
