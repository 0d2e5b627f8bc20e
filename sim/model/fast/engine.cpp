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
        at += parameters_->walk_cycles;
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
  writings_.clear();
  pair_done_.fill(at);
  unsigned pair = 0;
  for (unsigned offset = 0; offset < copy_.bytes; ++pair) {
    std::uint64_t left = page_bytes - (copy_.destination + offset) % page_bytes;
    if (!copy_.is_fill) left = std::min(left, page_bytes - (copy_.source + offset) % page_bytes);
    const auto end = static_cast<unsigned>(std::min<std::uint64_t>(copy_.bytes, offset + left));
    if (pair >= parameters_->cst_entries) {
      write_ready_until(~Cycle{0}, memory);
      // Entries are given back in the order of their pairs.
      at = std::max(at, *std::max_element(pair_done_.begin(), pair_done_.begin() + 1 + pair -
                                                                  parameters_->cst_entries));
    }
    while (offset < end) {
      const std::uint64_t in_block = (copy_.destination + offset) % parameters_->block_bytes;
      const auto bytes = static_cast<unsigned>(
          std::min<std::uint64_t>(end - offset, parameters_->block_bytes - in_block));
      at = older_copies(offset, bytes, free_place(at, memory), others);
      write_ready_until(at + parameters_->modulus_cycles, memory);
      readings_.push_back({read_block(offset, bytes, at, memory), offset, bytes, pair});
      ++at;
      offset += bytes;
    }
  }
  write_ready_until(~Cycle{0}, memory);
  return *std::max_element(pair_done_.begin(), pair_done_.end());
}

// When another block may start, from `at` on: one of those under way is done then.
Cycle FastEngine::free_place(Cycle at, FastMemory& memory) {
  while (readings_.size() + writings_.size() >= parameters_->engine_parallel) {
    const auto first = std::min_element(writings_.begin(), writings_.end());
    const Cycle done = first == writings_.end() ? ~Cycle{0} : *first;
    const bool one_is_ready = std::any_of(readings_.begin(), readings_.end(),
                                          [done](const Reading& one) { return one.ready <= done; });
    if (one_is_ready) {
      write_next(memory);
    } else {
      at = std::max(at, done);
      writings_.erase(first);
    }
  }
  return at;
}

// When its source is there, in the order in which it is written.
Cycle FastEngine::read_block(std::uint64_t offset, unsigned bytes, Cycle at, FastMemory& memory) {
  const Cycle asked = at + parameters_->modulus_cycles;
  if (copy_.is_fill) return asked;
  Cycle ready = asked;
  const std::uint64_t source = copy_.source + offset, destination = copy_.destination + offset;
  for (std::uint64_t block = block_of(source); block <= block_of(source + bytes - 1); ++block) {
    if (block != source_block_) {
      const std::uint64_t address = std::max(block * parameters_->block_bytes, copy_.source);
      source_block_ = block;
      source_ready_ =
          memory.read_source(block_of(physical_of(copy_.source_pages, copy_.source, address)),
                             copy_.affinities.source, asked);
    }
    ready = std::max(ready, source_ready_);
  }
  const bool is_shifted =
      source % parameters_->block_bytes != destination % parameters_->block_bytes;
  return is_shifted ? ready + parameters_->shift_cycles : ready;
}

// Writes the blocks whose sources are there by that cycle.
void FastEngine::write_ready_until(Cycle until, FastMemory& memory) {
  while (std::any_of(readings_.begin(), readings_.end(),
                     [until](const Reading& one) { return one.ready <= until; })) {
    write_next(memory);
  }
}

// Writes the block whose source is there first.
void FastEngine::write_next(FastMemory& memory) {
  const auto next = std::min_element(
      readings_.begin(), readings_.end(),
      [](const Reading& one, const Reading& other) { return one.ready < other.ready; });
  const Reading block = *next;
  readings_.erase(next);
  const std::uint64_t destination = copy_.destination + block.offset;
  const Cycle done = memory.write_destination(
      block_of(physical_of(copy_.destination_pages, copy_.destination, destination)),
      copy_.affinities.destination, block.bytes == parameters_->block_bytes, block.ready);
  const auto note = [&](BlockTimes& times, std::uint64_t begin) {
    const std::uint64_t from = begin + block.offset;
    for (std::uint64_t one = block_of(from); one <= block_of(from + block.bytes - 1); ++one) {
      Cycle& time = times[one - block_of(begin)];
      time = std::max(time, done);
    }
  };
  note(destination_done_, copy_.destination);
  if (!copy_.is_fill) note(source_done_, copy_.source);
  pair_done_[block.pair] = std::max(pair_done_[block.pair], done);
  writings_.push_back(done);
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
