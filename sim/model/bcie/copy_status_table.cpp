#include "model/bcie/copy_status_table.hpp"

namespace bcisim {

CopyStatusTable::CopyStatusTable(unsigned entries, unsigned block_bytes)
    : block_bytes_(block_bytes), entries_(entries) {
  order_.reserve(entries);
}

BlockBits CopyStatusTable::mask_of(std::uint64_t physical, unsigned bytes) const {
  BlockBits mask;
  for (unsigned block = block_of(physical); block <= block_of(physical + bytes - 1); ++block) {
    mask.set(block);
  }
  return mask;
}

unsigned CopyStatusTable::allocate(const Subcopy& pair) {
  unsigned index = 0;
  while (entries_[index].valid) ++index;
  StatusEntry& entry = entries_[index];
  entry = StatusEntry{};
  entry.valid = true;
  entry.pair = pair;
  entry.destination_mask = mask_of(pair.destination_physical, pair.bytes);
  if (!pair.is_fill) entry.source_mask = mask_of(pair.source_physical, pair.bytes);
  order_.push_back(index);
  return index;
}

void CopyStatusTable::copied(unsigned index, unsigned block) {
  StatusEntry& entry = entries_[index];
  const unsigned first = block_of(entry.pair.destination_physical);
  entry.destination_progress.set(first + block);
  const BlockMoves moves(entry.pair, block_bytes_);
  const BlockMove move = moves[block];
  for (unsigned i = 0; i < move.source_count; ++i) {
    const BlockMoves::Range made = moves.made_from(move.sources[i]);
    bool all = true;
    for (unsigned k = made.first; k <= made.last; ++k) {
      all = all && entry.destination_progress.test(first + k);
    }
    if (all) entry.source_progress.set(block_of(move.sources[i] * block_bytes_));
  }
}

Subcopy CopyStatusTable::deallocate_oldest() {
  StatusEntry& entry = entries_[order_.front()];
  order_.erase(order_.begin());
  entry.valid = false;
  return entry.pair;
}

void CopyStatusTable::clear() {
  order_.clear();
  for (StatusEntry& entry : entries_) entry.valid = false;
}

unsigned CopyStatusTable::copied_bytes(Side side, std::uint64_t physical, unsigned bytes) const {
  unsigned count = 0;
  for (const unsigned index : order_) {
    const StatusEntry& entry = entries_[index];
    const bool is_source = side == Side::source;
    if (is_source && entry.pair.is_fill) continue;
    const std::uint64_t side_begin =
        is_source ? entry.pair.source_physical : entry.pair.destination_physical;
    std::uint64_t from = std::max(physical, side_begin);
    const std::uint64_t to = std::min(physical + bytes, side_begin + entry.pair.bytes);
    const BlockBits& progress = is_source ? entry.source_progress : entry.destination_progress;
    while (from < to) {
      const std::uint64_t end = std::min(to, (from / block_bytes_ + 1) * block_bytes_);
      if (progress.test(block_of(from))) count += static_cast<unsigned>(end - from);
      from = end;
    }
  }
  return count;
}

}  // namespace bcisim
