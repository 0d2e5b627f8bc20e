#include "model/fast/memory.hpp"

#include <algorithm>

namespace bcisim {

FastMemory::FastMemory(const Parameters& parameters, bool perfect)
    : l1i_latency_(parameters.l1i.latency),
      l1d_latency_(parameters.l1d.latency),
      l2_latency_(parameters.l2.latency),
      memory_cycles_(parameters.memory_cycles),
      block_bytes_(parameters.block_bytes),
      reads_destination_(parameters.reads_destination),
      levels_(parameters),
      bus_(parameters),
      write_buffer_(parameters.write_buffer_entries, 0) {
  if (perfect) shadow_.emplace_back(parameters);
}

void FastMemory::put_in_l2(Levels& levels, std::uint64_t block, bool dirty, Cycle ready) {
  const Cache::Line gone = levels.l2.insert(block, dirty, ready);
  if (gone.block != Cache::none && gone.dirty != 0 && &levels == &levels_) bus_.write(ready);
}

void FastMemory::put_in_l1(Levels& levels, Cache& l1, std::uint64_t block, bool dirty,
                           Cycle ready) {
  const Cache::Line gone = l1.insert(block, dirty, ready);
  if (gone.block == Cache::none || gone.dirty == 0) return;
  if (Cache::Line* const below = levels.l2.find(gone.block)) {
    below->dirty = 1;
  } else {
    put_in_l2(levels, gone.block, true, ready);
  }
}

// Wherever it was found, the block is in these levels from now on.
void FastMemory::settle(Levels& levels, Cache& l1, std::uint64_t block, bool is_store,
                        Cycle ready) {
  if (levels.l2.find(block) == nullptr) put_in_l2(levels, block, false, ready);
  put_in_l1(levels, l1, block, is_store, ready);
}

Cycle FastMemory::access_further(Cache& l1, unsigned l1_latency, std::uint64_t block, Cycle at,
                                 bool is_store) {
  Cache* shadow_l1 = nullptr;
  Cache::Line* first[2] = {l1.find(block), nullptr};
  bool was_copied = false;
  if (!shadow_.empty()) {
    was_copied = copied_.contains(block);
    shadow_l1 = &l1 == &levels_.l1i ? &shadow_[0].l1i : &shadow_[0].l1d;
    first[1] = shadow_l1->find(block);
  }
  // As in filled(): nothing comes later than if this access asked for it.
  const Cycle asked = at + l1_latency + l2_latency_;
  Cycle filled = was_copied ? 0 : ~Cycle{0}, ready;
  for (Cache::Line* line : first) {
    if (line == nullptr) continue;
    filled = std::min<Cycle>(filled, line->ready_at);
    if (is_store) line->dirty = 1;
  }
  if (filled != ~Cycle{0}) {
    ready = std::max(at + l1_latency, std::min(filled, asked + memory_cycles_));
  } else {
    ++l1_misses_;
    if (const Cache::Line* line = levels_.l2.peek(block)) filled = line->ready_at;
    if (shadow_l1 != nullptr) {
      if (const Cache::Line* line = shadow_[0].l2.peek(block)) {
        filled = std::min<Cycle>(filled, line->ready_at);
      }
    }
    if (filled != ~Cycle{0}) {
      ready = std::max(asked, std::min(filled, asked + memory_cycles_));
    } else {
      ++l2_misses_;
      ready = bus_.read(asked);
    }
  }
  if (first[0] == nullptr) settle(levels_, l1, block, is_store, ready);
  if (shadow_l1 != nullptr && first[1] == nullptr && !was_copied)
    settle(shadow_[0], *shadow_l1, block, is_store, ready);
  return ready;
}

bool FastMemory::take_out_data(Levels& levels, std::uint64_t block) {
  const bool dirty = levels.l1d.remove(block).dirty != 0;
  return levels.l2.remove(block).dirty != 0 || dirty;
}

Cycle FastMemory::read_source(std::uint64_t block, Affinity affinity, Cycle at) {
  if (!shadow_.empty()) copied_.insert(block);
  Cycle ready = at + l1d_latency_;
  const Cache::Line* first = levels_.l1d.peek(block);
  const Cache::Line* second = levels_.l2.peek(block);
  const bool was_there = first != nullptr || second != nullptr;
  if (first != nullptr) {
    ready = std::max<Cycle>(ready, first->ready_at);
  } else {
    ready += l2_latency_;
    if (second != nullptr) {
      ready = std::max<Cycle>(ready, second->ready_at);
    } else {
      ++copy_l2_misses_;
      ready = bus_.read(ready);
    }
  }
  if (affinity == Affinity::cacheable) {
    if (levels_.l1d.find(block) == nullptr) settle(levels_, levels_.l1d, block, false, ready);
  } else if (affinity == Affinity::non_cacheable && was_there && take_out_data(levels_, block)) {
    bus_.write(ready);
  }
  return ready;
}

// Through the write-combining buffer: when the block is done.
Cycle FastMemory::to_memory(Cycle at) {
  if (write_buffer_.empty()) return bus_.write(at);
  const auto entry = std::min_element(write_buffer_.begin(), write_buffer_.end());
  at = std::max(at, *entry);
  *entry = bus_.write(at);
  return at;
}

Cycle FastMemory::write_destination(std::uint64_t block, Affinity affinity, bool whole, Cycle at) {
  if (!shadow_.empty()) copied_.insert(block);
  Cycle done = at + l1d_latency_;
  Cache::Line* line = levels_.l1d.find(block);
  if (line == nullptr) {
    done += l2_latency_;
    line = levels_.l2.find(block);
  }
  if (line != nullptr) {
    line->dirty = 1;
    done = std::max<Cycle>(done, line->ready_at);
    if (affinity != Affinity::non_cacheable) return done;
    take_out_data(levels_, block);
    return to_memory(done);
  }
  if (affinity != Affinity::cacheable) return to_memory(done);
  if (!whole || reads_destination_) {
    ++copy_l2_misses_;
    done = bus_.read(done);
  }
  settle(levels_, levels_.l1d, block, true, done);
  return done;
}

// Calls each(block) for the blocks of [first, last], or, where these are more than the caches hold,
// for those of them that are there.
template <class Each>
void FastMemory::for_each_there(std::uint64_t first, std::uint64_t last, Each&& each) const {
  constexpr std::uint64_t many = 4096;
  if (last - first < many) {
    for (std::uint64_t block = first; block <= last; ++block) each(block);
    return;
  }
  std::vector<std::uint64_t> there;
  const auto look = [&](const Levels& levels) {
    for (const Cache* cache : {&levels.l1i, &levels.l1d, &levels.l2}) {
      cache->for_each([&](std::uint64_t block) {
        if (block >= first && block <= last) there.push_back(block);
      });
    }
  };
  look(levels_);
  for (const Levels& levels : shadow_) look(levels);
  for (const std::uint64_t block : copied_) {
    if (block >= first && block <= last) there.push_back(block);
  }
  std::sort(there.begin(), there.end());
  there.erase(std::unique(there.begin(), there.end()), there.end());
  for (const std::uint64_t block : there) each(block);
}

void FastMemory::device_writes(std::uint64_t first, std::uint64_t last) {
  for_each_there(first, last, [this](std::uint64_t block) {
    copied_.erase(block);
    take_out_data(levels_, block);
    levels_.l1i.remove(block);
    for (Levels& levels : shadow_) {
      take_out_data(levels, block);
      levels.l1i.remove(block);
    }
  });
}

// Was it dirty?
bool FastMemory::clean(Levels& levels, std::uint64_t block) {
  bool was_dirty = false;
  for (Cache* cache : {&levels.l1d, &levels.l2}) {
    Cache::Line* const line = cache->peek(block) == nullptr ? nullptr : cache->find(block);
    if (line == nullptr) continue;
    was_dirty = was_dirty || line->dirty != 0;
    line->dirty = 0;
  }
  return was_dirty;
}

void FastMemory::device_reads(std::uint64_t first, std::uint64_t last, Cycle at) {
  for_each_there(first, last, [this, at](std::uint64_t block) {
    if (clean(levels_, block)) bus_.write(at);
    for (Levels& levels : shadow_) clean(levels, block);
  });
}

void FastMemory::warm(const Checkpoint& checkpoint) {
  constexpr std::uint64_t checkpoint_block_bytes = 64;
  const auto put = [](Cache& l2, std::uint64_t block, bool dirty) {
    if (Cache::Line* const line = l2.find(block)) {
      line->dirty = line->dirty != 0 || dirty ? 1 : 0;
    } else {
      l2.insert(block, dirty, 0);
    }
  };
  for (const Checkpoint::Block& block : checkpoint.blocks) {
    const std::uint64_t begin = block.number * checkpoint_block_bytes;
    const std::uint64_t end = begin + checkpoint_block_bytes;
    for (std::uint64_t own = begin / block_bytes_; own * block_bytes_ < end; ++own) {
      put(levels_.l2, own, block.dirty);
      for (Levels& levels : shadow_) put(levels.l2, own, block.dirty);
    }
  }
}

void FastMemory::report(Result& result) const {
  result.accesses = accesses_;
  result.l1_misses = l1_misses_;
  result.l2_misses = l2_misses_;
  result.copy_l2_misses = copy_l2_misses_;
  result.bus_blocks = bus_.blocks();
}

}  // namespace bcisim
