#include "model/fast/engine.hpp"

#include <algorithm>

namespace bcisim {

FastEngine::Times FastEngine::run(const BulkCopy& copy, Cycle at, FastMemory& memory, Tlb& tlb,
                                  std::span<const FastEngine> others) {
  copy_ = copy;
  times_.tlb_misses = 0;
  times_.validated = validate(at, tlb);
  times_.done = finish(times_.validated, memory, others);
  return times_;
}

Cycle FastEngine::validate(Cycle at, Tlb& tlb) {
  const auto side = [&](std::uint64_t begin, const std::array<std::uint64_t, 2>& pages) {
    const std::uint64_t last = begin + copy_.bytes - 1;
    const unsigned count = begin / page_bytes == last / page_bytes ? 1 : 2;
    for (unsigned i = 0; i < count; ++i) {
      ++at;
      if (!tlb.touch(begin + i * page_bytes, pages[i] * page_bytes)) {
        at += parameters_.walk_cycles;
        ++times_.tlb_misses;
      }
    }
  };
  if (!copy_.is_fill) side(copy_.source, copy_.source_pages);
  side(copy_.destination, copy_.destination_pages);
  return at;
}

// Subcopy by subcopy, each of one pair of pages, and destination block by block.
Cycle FastEngine::finish(Cycle at, FastMemory& memory, std::span<const FastEngine> others) {
  destination_done_.fill(0);
  source_done_.fill(0);
  source_block_ = ~std::uint64_t{0};
  std::fill(slots_.begin(), slots_.end(), 0);
  std::array<Cycle, 3> pair_done{};
  Cycle start = at, all_done = at;
  unsigned pair = 0;
  for (unsigned offset = 0; offset < copy_.bytes; ++pair) {
    std::uint64_t left = page_bytes - (copy_.destination + offset) % page_bytes;
    if (!copy_.is_fill) left = std::min(left, page_bytes - (copy_.source + offset) % page_bytes);
    const auto end = static_cast<unsigned>(std::min<std::uint64_t>(copy_.bytes, offset + left));
    if (pair >= parameters_.cst_entries)
      start = std::max(start, pair_done[pair - parameters_.cst_entries]);
    while (offset < end) {
      const std::uint64_t in_block = (copy_.destination + offset) % parameters_.block_bytes;
      const auto bytes = static_cast<unsigned>(
          std::min<std::uint64_t>(end - offset, parameters_.block_bytes - in_block));
      Cycle& slot = *std::min_element(slots_.begin(), slots_.end());
      start = std::max(start, slot);
      const Cycle done =
          copy_block(offset, bytes, older_copies(offset, bytes, start, others), memory);
      slot = done;
      pair_done[pair] = std::max(pair_done[pair], done);
      ++start;
      offset += bytes;
    }
    // Page pairs are given back in order.
    if (pair > 0) pair_done[pair] = std::max(pair_done[pair], pair_done[pair - 1]);
    all_done = std::max(all_done, pair_done[pair]);
  }
  return all_done;
}

Cycle FastEngine::copy_block(std::uint64_t offset, unsigned bytes, Cycle at, FastMemory& memory) {
  Cycle ready = at + parameters_.modulus_cycles;
  const std::uint64_t source = copy_.source + offset, destination = copy_.destination + offset;
  if (!copy_.is_fill) {
    const Cycle asked = ready;
    for (std::uint64_t block = block_of(source); block <= block_of(source + bytes - 1); ++block) {
      if (block != source_block_) {
        const std::uint64_t address = std::max(block * parameters_.block_bytes, copy_.source);
        source_block_ = block;
        source_ready_ =
            memory.read_source(block_of(physical_of(copy_.source_pages, copy_.source, address)),
                               copy_.affinities.source, asked);
      }
      ready = std::max(ready, source_ready_);
    }
    if (source % parameters_.block_bytes != destination % parameters_.block_bytes) {
      ready += parameters_.shift_cycles;
    }
  }
  const Cycle done = memory.write_destination(
      block_of(physical_of(copy_.destination_pages, copy_.destination, destination)),
      copy_.affinities.destination, bytes == parameters_.block_bytes, ready);
  const auto note = [&](BlockTimes& times, std::uint64_t begin, std::uint64_t from) {
    for (std::uint64_t block = block_of(from); block <= block_of(from + bytes - 1); ++block) {
      Cycle& time = times[block - block_of(begin)];
      time = std::max(time, done);
    }
  };
  note(destination_done_, copy_.destination, destination);
  if (!copy_.is_fill) note(source_done_, copy_.source, source);
  return done;
}

// When a block may start of which older copies may not yet have written the source or read the
// destination.
Cycle FastEngine::older_copies(std::uint64_t offset, unsigned bytes, Cycle at,
                               std::span<const FastEngine> others) const {
  const std::uint64_t to =
      physical_of(copy_.destination_pages, copy_.destination, copy_.destination + offset);
  for (const FastEngine& other : others) {
    if (&other == this || other.done() <= at) continue;
    at = other.store_may(to, bytes, at);
    if (copy_.is_fill) continue;
    at = other.load_may(physical_of(copy_.source_pages, copy_.source, copy_.source + offset), bytes,
                        at);
  }
  return at;
}

Cycle FastEngine::side_may(const Side& side, std::uint64_t physical, unsigned bytes,
                           Cycle at) const {
  const std::uint64_t last = side.begin + copy_.bytes - 1, first_page = side.begin / page_bytes;
  for (std::uint64_t page = first_page; page <= last / page_bytes; ++page) {
    if (physical / page_bytes != side.pages[page - first_page]) continue;
    const std::uint64_t address = page * page_bytes + physical % page_bytes;
    const std::uint64_t first = std::max(side.begin, address);
    const std::uint64_t end = std::min(last + 1, address + bytes);
    if (first >= end) continue;
    if (!waits_by_block_) return std::max(at, times_.done);
    for (std::uint64_t block = block_of(first); block <= block_of(end - 1); ++block) {
      at = std::max(at, side.done[block - block_of(side.begin)]);
    }
  }
  return at;
}

}  // namespace bcisim
