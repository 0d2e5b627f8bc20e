#include "model/stepped/memory.hpp"

namespace bcisim {

Memory::Memory(const Parameters& parameters, bool perfect_cache, Result& result)
    : parameters_(parameters),
      caches_(parameters),
      bus_(parameters.bus_block_cycles()),
      write_buffer_(parameters.write_buffer_entries, bus_),
      result_(result) {
  if (perfect_cache) shadow_.emplace(parameters);
}

void Memory::warm(const Checkpoint& checkpoint) {
  for (const Checkpoint::Block& one : checkpoint.blocks) {
    const std::uint64_t begin = one.number * 64;
    const std::uint64_t last = (begin + 63) / parameters_.block_bytes;
    for (std::uint64_t block = begin / parameters_.block_bytes; block <= last; ++block) {
      caches_.warm(block, one.dirty);
      if (shadow_) shadow_->warm(block, one.dirty);
    }
  }
}

Memory::Fill* Memory::fill_of(std::uint64_t block) {
  for (Fill& fill : fills_) {
    if (fill.block == block) return &fill;
  }
  return nullptr;
}

Memory::Fill& Memory::start_fill(std::uint64_t block, Cycle asks_at, bool from_memory) {
  Fill fill;
  fill.block = block;
  fill.from_memory = from_memory;
  fill.asks_at = asks_at;
  fill.there = std::make_shared<Cycle>(from_memory ? never : asks_at);
  fills_.push_back(std::move(fill));
  return fills_.back();
}

void Memory::add_side(Fill& fill, Side side) {
  (side == Side::instructions ? fill.to_instructions : fill.to_data) = true;
}

Access Memory::access(Side side, std::uint64_t block, bool write, Cycle now) {
  ++result_.accesses;
  const Cycle hit = now + l1_latency(side);
  const bool in_l1 = caches_.in_l1(side, block, write);
  const bool was_copied = shadow_ && copied_.contains(block);
  const bool in_shadow_l1 = (shadow_ && shadow_->in_l1(side, block, write)) || was_copied;
  Fill* fill = in_l1 ? nullptr : fill_of(block);
  if (in_l1 || in_shadow_l1) {
    // The other set of caches gets it without delay, unless it is on its way there.
    if (!in_l1 && fill == nullptr) write_back(caches_.fill(side, block, write), now);
    if (!in_shadow_l1 && shadow_) shadow_->fill(side, block, write);
    if (fill != nullptr) {
      add_side(*fill, side);
      fill->dirty = fill->dirty || write;
    }
    return Access(hit);
  }
  if (fill == nullptr) {
    ++result_.l1_misses;
    const bool in_l2 = caches_.in_l2(block);
    const bool in_shadow_l2 = shadow_ && shadow_->in_l2(block);
    const bool from_memory = !in_l2 && !in_shadow_l2;
    if (from_memory) ++result_.l2_misses;
    fill = &start_fill(block, hit + parameters_.l2.latency, from_memory);
  }
  add_side(*fill, side);
  fill->dirty = fill->dirty || write;
  fill->of_instructions = true;
  return Access(hit, fill->there);
}

Access Memory::copy_read(std::uint64_t block, Affinity affinity, Cycle now) {
  if (shadow_) copied_.insert(block);
  const Cycle hit = now + parameters_.l1d.latency;
  if (caches_.in_l1(Side::data, block, false)) return Access(hit);
  Fill* fill = fill_of(block);
  if (fill == nullptr) {
    const bool in_l2 = caches_.in_l2(block);
    if (in_l2 && affinity != Affinity::cacheable) return Access(now + search_cycles());
    if (!in_l2) ++result_.copy_l2_misses;
    fill = &start_fill(block, now + search_cycles(), !in_l2);
  }
  if (affinity == Affinity::cacheable) fill->to_data = true;
  return Access(hit, fill->there);
}

void Memory::evict(std::uint64_t block, Cycle now) {
  if (caches_.remove(block)) write_back(1, now);
}

Memory::CopyWrite Memory::copy_write(std::uint64_t block, bool whole, Affinity affinity,
                                     Cycle now) {
  if (shadow_) copied_.insert(block);
  const Cycle hit = now + parameters_.l1d.latency, searched = now + search_cycles();
  Fill* fill = fill_of(block);
  if (fill != nullptr && fill->comes_into_caches()) {
    fill->to_data = fill->dirty = true;
    return {Access(hit, fill->there), true};
  }
  switch (caches_.write_in_place(block)) {
    case Level::l1: return {Access(hit), true};
    case Level::l2: return {Access(searched), true};
    case Level::memory: break;
  }
  if (affinity != Affinity::cacheable) {
    return {write_buffer_.add(searched, now), false};
  }
  if (fill == nullptr) {
    const bool reads = !whole || parameters_.reads_destination;
    if (reads) ++result_.copy_l2_misses;
    fill = &start_fill(block, searched, reads);
  }
  fill->to_data = fill->dirty = true;
  return {Access(searched, fill->there), true};
}

Access Memory::write_out(std::uint64_t block, Cycle now) {
  caches_.remove(block);
  return write_buffer_.add(now, now);
}

void Memory::device(std::uint64_t block, bool writes, Cycle now) {
  if (!writes) {
    if (caches_.clean(block)) write_back(1, now);
    if (shadow_) shadow_->clean(block);
    return;
  }
  caches_.remove(block);
  copied_.erase(block);
  if (shadow_) shadow_->remove(block);
  // A block on its way is outdated: it serves the accesses that wait for it, and no cache takes it.
  if (Fill* const fill = fill_of(block); fill != nullptr) {
    fill->to_instructions = fill->to_data = fill->dirty = false;
  }
}

void Memory::write_back(unsigned blocks, Cycle now) {
  for (; blocks != 0; --blocks) bus_.carry(now, true, std::make_shared<Cycle>(never));
}

void Memory::put_in(Hierarchy& caches, const Fill& fill, Cycle now) {
  unsigned to_memory = 0;
  if (fill.to_instructions) {
    to_memory += caches.fill(Side::instructions, fill.block, fill.dirty && !fill.to_data);
  }
  if (fill.to_data) to_memory += caches.fill(Side::data, fill.block, fill.dirty);
  if (&caches == &caches_) write_back(to_memory, now);
}

void Memory::arrive(const Fill& fill, Cycle now) {
  if (fill.has_mshr) --mshrs_used_;
  put_in(caches_, fill, now);
  if (shadow_ && fill.of_instructions) put_in(*shadow_, fill, now);
}

bool Memory::give_bus(Cycle now) {
  const bool active = bus_.step(now);
  result_.bus_blocks = bus_.blocks();
  return active;
}

bool Memory::step(Cycle now) {
  // What was ready before this cycle goes first; it may even arrive in this one.
  bool active = bus_.step(now);
  active = write_buffer_.step(now) || active;
  for (std::size_t i = 0; i < fills_.size();) {
    if (*fills_[i].there > now) {
      ++i;
      continue;
    }
    arrive(fills_[i], now);
    fills_.erase(fills_.begin() + static_cast<std::ptrdiff_t>(i));
    active = true;
  }
  for (Fill& fill : fills_) {
    if (!fill.from_memory || fill.has_mshr || fill.asks_at > now) continue;
    if (mshrs_used_ == parameters_.mshrs) break;
    ++mshrs_used_;
    fill.has_mshr = true;
    bus_.carry(now + parameters_.memory_cycles - parameters_.bus_block_cycles(), false, fill.there);
    active = true;
  }
  return active;
}

Cycle Memory::next_event(Cycle now) const {
  Cycle next = std::min(bus_.next_event(now), write_buffer_.next_event(now));
  for (const Fill& fill : fills_) {
    next = next_of(*fill.there, now, next);
    if (fill.from_memory && !fill.has_mshr) next = next_of(fill.asks_at, now, next);
  }
  return next;
}

}  // namespace bcisim
