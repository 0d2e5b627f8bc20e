#include "model/stepped/copy_run.hpp"

namespace bcisim {

CopyRun::CopyRun(std::uint64_t number, const BulkCopy& copy, CopySurroundings& surroundings)
    : number_(number),
      copy_(copy),
      with_(surroundings),
      engine_(surroundings.parameters.cst_entries, surroundings.parameters.block_bytes) {}

void CopyRun::start(Cycle now) {
  engine_.program(copy_);
  state_ = State::validating;
  started_at_ = validation_ends_ = now;
}

bool CopyRun::step(Cycle now, const IsPending& is_pending) {
  bool active = false;
  if (state_ == State::validating) active = validate(now);
  if (state_ != State::finishing) return active;
  for (std::size_t i = 0; i < moves_.size();) {
    Move& move = moves_[i];
    active = advance(move, now) || active;
    if (move.stage != Move::Stage::leaving || move.access.done() > now) {
      ++i;
      continue;
    }
    engine_.copied(move.entry, move.index);
    tell(Happening::Kind::copied, now, move.what);
    moves_.erase(moves_.begin() + static_cast<std::ptrdiff_t>(i));
    active = true;
  }
  if (engine_.done()) {
    finish(now);
    return true;
  }
  return start_move(now, is_pending) || active;
}

// A page a cycle, and its walk.
bool CopyRun::validate(Cycle now) {
  if (now < validation_ends_) return false;
  if (engine_.validation().empty()) {
    state_ = State::finishing;
    tell(Happening::Kind::validated, now);
    return true;
  }
  const ValidationRegisters::Page page = engine_.validation().next();
  if (with_.page_fault && with_.page_fault(page.address, page.is_written)) {
    // The exception is taken, then the copy is executed again, from its start-up.
    unlock_pages();
    state_ = State::waiting;
    return true;
  }
  const std::uint64_t translation = Tlb::page_of(page.address, page.physical);
  validation_ends_ = now + 1;
  if (!with_.data_tlb.touch(translation)) {
    ++with_.result.tlb_misses;
    validation_ends_ += with_.parameters.walk_cycles;
  }
  with_.data_tlb.lock(translation);
  locked_.push_back(translation);
  engine_.validation().validated();
  return true;
}

void CopyRun::unlock_pages() {
  for (const std::uint64_t page : locked_) with_.data_tlb.unlock(page);
  locked_.clear();
}

bool CopyRun::start_move(Cycle now, const IsPending& is_pending) {
  bool active = false;
  while (engine_.can_start_pair()) {
    const unsigned entry = engine_.start_pair();
    const Subcopy& pair = engine_.table().entry(entry).pair;
    pairs_.push_back({entry, 0, BlockMoves(pair, with_.parameters.block_bytes).count()});
    active = true;
  }
  if (pairs_.empty() || moves_.size() >= with_.parameters.engine_parallel) return active;
  Pair& first = pairs_.front();
  const Subcopy& pair = engine_.table().entry(first.entry).pair;
  const BlockMove what = BlockMoves(pair, with_.parameters.block_bytes)[first.next_block];
  // What it reads and overwrites may be an older copy's.
  const std::uint64_t target = what.destination * with_.parameters.block_bytes + what.offset;
  if (is_pending(target, what.bytes, true)) return active;
  if (!pair.is_fill &&
      is_pending(target - pair.destination_physical + pair.source_physical, what.bytes, false)) {
    return active;
  }
  Move move{first.entry,
            first.next_block,
            what,
            Move::Stage::modulus,
            now + with_.parameters.modulus_cycles,
            Access(),
            false,
            {},
            0};
  tell(Happening::Kind::begun, now, what);
  if (++first.next_block == first.blocks) pairs_.erase(pairs_.begin());
  advance(move, now);
  moves_.push_back(std::move(move));
  return true;
}

void CopyRun::read_sources(Move& move, Cycle now) {
  move.access = Access(now);
  for (unsigned i = 0; i < move.what.source_count; ++i) {
    const std::uint64_t source = move.what.sources[i];
    if (source != last_source_) {
      last_source_ = source;
      last_read_ = with_.memory.copy_read(source, copy_.affinities.source, now);
      move.read[move.read_count++] = source;
    }
    move.access.join(last_read_);
  }
}

void CopyRun::sources_read(Move& move, Cycle now) {
  if (copy_.affinities.source != Affinity::non_cacheable) return;
  for (unsigned i = 0; i < move.read_count; ++i) with_.memory.evict(move.read[i], now);
}

// Through all stages that end in this cycle. Did one end?
bool CopyRun::advance(Move& move, Cycle now) {
  bool active = false;
  if (move.stage == Move::Stage::modulus && move.stage_ends <= now) {
    read_sources(move, now);
    move.stage = Move::Stage::reading;
    active = true;
  }
  if (move.stage == Move::Stage::reading && move.access.done() <= now) {
    sources_read(move, now);
    move.stage = Move::Stage::shifting;
    move.stage_ends = now + (move.what.is_shifted ? with_.parameters.shift_cycles : 0);
    active = true;
  }
  if (move.stage == Move::Stage::shifting && move.stage_ends <= now) {
    const bool whole = move.what.bytes == with_.parameters.block_bytes;
    const Memory::CopyWrite write =
        with_.memory.copy_write(move.what.destination, whole, copy_.affinities.destination, now);
    move.access = write.access;
    move.written_in_caches = write.in_caches;
    move.stage = Move::Stage::writing;
    active = true;
  }
  if (move.stage == Move::Stage::writing && move.access.done() <= now) {
    if (move.written_in_caches && copy_.affinities.destination == Affinity::non_cacheable) {
      move.access = with_.memory.write_out(move.what.destination, now);
    }
    move.stage = Move::Stage::leaving;
    active = true;
  }
  return active;
}

void CopyRun::finish(Cycle now) {
  unlock_pages();
  state_ = State::done;
  ++with_.result.copies;
  with_.result.copy_bytes += copy_.bytes;
  with_.result.copy_cycles += now - started_at_;
  tell(Happening::Kind::done, now);
}

bool CopyRun::is_pending(std::uint64_t physical, unsigned bytes, bool is_store) const {
  if (state_ == State::done) return false;
  if (is_validated() && with_.traits.waits_by_block) {
    return engine_.check(physical, bytes, is_store) == Dependence::pending;
  }
  return destination_of(copy_).shared_with(physical, bytes) != 0 ||
         (is_store && source_of(copy_).shared_with(physical, bytes) != 0);
}

Cycle CopyRun::next_event(Cycle now) const {
  Cycle next = never;
  if (state_ == State::validating) next = next_of(validation_ends_, now, next);
  for (const Move& move : moves_) {
    const bool timed = move.stage == Move::Stage::modulus || move.stage == Move::Stage::shifting;
    next = next_of(timed ? move.stage_ends : move.access.done(), now, next);
  }
  return next;
}

}  // namespace bcisim
