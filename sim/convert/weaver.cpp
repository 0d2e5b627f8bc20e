#include "convert/weaver.hpp"

#include <algorithm>

#include "format/layout.hpp"

namespace bcisim {

namespace {

constexpr std::uint64_t no_memory = ~std::uint64_t{0};  // BCISIM_MEMORY's physical address

}  // namespace

void Weaver::execute(std::uint32_t place) {
  if (held_ != Place::none) {
    const Place& held = places_[held_];
    if (held_ == place && held.code.flow == Flow::repeated) {
      repeat(held);
      return;
    }
    settle(places_[place]);
  }
  held_ = place;
  references_.clear();
  iteration_ = 0;
  refers_to_io_ = false;
}

// The next iteration of a string instruction begins.
void Weaver::repeat(const Place& place) {
  if (!complete(place)) {  // or the last one faulted
    references_.resize(iteration_);
    ++summary_.faulted;
  }
  const std::size_t of_iteration = references_.size() - iteration_;
  if (references_.size() + of_iteration > most_references) {
    emit(false);
    references_.clear();
    refers_to_io_ = false;
  }
  iteration_ = references_.size();
}

bool Weaver::complete(const Place& place) const {
  if (refers_to_io_) return true;
  bool loads = !place.code.must_load, stores = !place.code.must_store;
  for (std::size_t i = iteration_; i < references_.size(); ++i)
    (references_[i].is_store ? stores : loads) = true;
  return loads && stores;
}

// When the processor enters a handler it refers to memory itself, and the tracer tells it as if the
// instruction before had: three words of the interrupt table, two of the segment table, perhaps the
// stack's address, and 5 or 6 words pushed. Takes these off and says whether there were such.
bool Weaver::take_off_entry() {
  const auto is = [&](std::size_t at, bool store, unsigned bytes) {
    return references_[at].is_store == store && references_[at].bytes == bytes;
  };
  const auto next_to = [&](std::size_t at, std::uint64_t distance) {
    return references_[at + 1].address == references_[at].address + distance;
  };
  if (references_.size() < iteration_ + 10) return false;
  std::size_t at = references_.size() - 1;
  const std::size_t last = at;
  while (at > iteration_ && is(at - 1, true, 8) && next_to(at - 1, 0 - std::uint64_t{8})) --at;
  const std::size_t pushed = last - at + 1;
  if (!is(last, true, 8) || pushed < 5 || pushed > 6) return false;
  if (at > iteration_ && is(at - 1, false, 8)) --at;
  if (at < iteration_ + 5) return false;
  at -= 5;
  for (std::size_t i = 0; i < 5; ++i)
    if (!is(at + i, false, 4)) return false;
  if (references_[at].address % 16 != 0 || !next_to(at, 4) || !next_to(at + 1, 4) ||
      !next_to(at + 3, 4))
    return false;
  references_.resize(at);
  return true;
}

Weaver::After Weaver::after(const Place& place, const Place& next, bool entered) const {
  if (entered) return After::interrupt;
  bool possible = false;
  switch (place.code.flow) {
    case Flow::straight:
    case Flow::repeated: possible = next.address() == place.behind(); break;
    case Flow::branch:
      possible = next.address() == place.behind() || next.address() == place.code.target;
      break;
    case Flow::direct: possible = next.address() == place.code.target; break;
    case Flow::anywhere:
      possible = next.routine != Routine::interrupt_entry && complete(place);
      break;
  }
  if (possible) return After::follows;
  return next.address() == place.address() ? After::restart : After::interrupt;
}

void Weaver::settle(const Place& next) {
  const Place& place = places_[held_];
  const bool entered = take_off_entry();
  const After how = after(place, next, entered);
  bool dropped = false;
  if (how == After::follows) {
    emit(place.code.flow == Flow::branch && next.address() != place.behind());
  } else {
    dropped = how == After::restart || !complete(place);
    if (dropped) {
      ++summary_.faulted;
      references_.resize(iteration_);
    }
    if (!dropped || iteration_ != 0) emit(false);
  }
  emit_devices();
  track(place, next, how == After::interrupt, dropped);
  if (how == After::interrupt) {
    ++summary_.interrupts;
    chunk_.events.push_back(
        {Event::Kind::interrupt, static_cast<std::uint32_t>(chunk_.instructions.size()), 0});
  }
  if (!tracker_.open() && chunk_.instructions.size() >= most_instructions_of_chunk) flush();
}

void Weaver::track(const Place& place, const Place& next, bool interrupted, bool dropped) {
  const bool enters = next.routine >= Routine::copy && next.routine <= Routine::fill;
  if (tracker_.open()) {
    tracker_.check_length();
    if (tracker_.open() && interrupted) {
      const bool may_jump = place.code.flow == Flow::branch || place.code.flow == Flow::direct;
      const std::uint64_t resume = dropped ? place.address() : place.behind();
      tracker_.interrupt(resume, may_jump && !dropped ? place.code.target : resume);
    } else if (tracker_.open() && !enters && next.routine != Routine::passage) {
      tracker_.end(next.address());
    }
  }
  if (!enters || tracker_.open()) return;
  const bool was_inside = place.routine >= Routine::copy && place.routine <= Routine::fill;
  if (was_inside && !interrupted && !place.code.is_call) return;  // of one that was too long
  tracker_.begin(next.routine, place.code.is_call && !interrupted ? place.behind() : 0,
                 next.address());
}

bool Weaver::refer(const StreamRecord& record) {
  if (record.physical == no_memory) {
    refers_to_io_ = true;
    ++summary_.io_references;
    return true;
  }
  const std::uint64_t into = record.address % layout::page_bytes;
  if (record.physical % layout::page_bytes != into) return false;
  const std::uint64_t here = std::min<std::uint64_t>(record.bytes, layout::page_bytes - into);
  references_.push_back(
      {record.address, record.physical, static_cast<std::uint16_t>(here), record.is_store});
  pages_.learn(record.address >> layout::page_shift, record.physical >> layout::page_shift);
  if (here == record.bytes) return true;
  const std::uint64_t address = record.address + here;
  const std::uint64_t page = pages_.expected(address >> layout::page_shift);
  references_.push_back({address, page * layout::page_bytes,
                         static_cast<std::uint16_t>(record.bytes - here), record.is_store});
  ++summary_.guessed_pages;
  return true;
}

void Weaver::add_device(const StreamRecord& record) {
  devices_.push_back({record.physical, record.bytes, record.is_store});
  (record.is_store ? summary_.device_written_bytes : summary_.device_read_bytes) += record.bytes;
  if (held_ == Place::none) emit_devices();
}

std::uint32_t Weaver::index_of(Place& place) {
  std::uint32_t& index = refers_to_io_ ? place.io_index : place.index;
  if (index != Place::none) return index;
  StaticInstruction instruction = place.code.instruction;
  if (refers_to_io_) instruction.kind = InstructionClass::serializing;
  index = writer_.add_static(instruction);
  tracker_.add_static(index, place.code.refers_aside);
  if (!place.code.known) ++summary_.unknown_code;
  return index;
}

// The instruction held back, with the references that it has so far.
void Weaver::emit(bool taken) {
  Place& place = places_[held_];
  const std::uint32_t index = index_of(place);
  std::size_t done = 0;
  do {
    const std::size_t count = std::min<std::size_t>(references_.size() - done, most_references);
    DynamicInstruction instruction;
    instruction.what = index;
    instruction.first_reference = static_cast<std::uint32_t>(chunk_.references.size());
    instruction.references = static_cast<std::uint8_t>(count);
    instruction.taken = taken;
    for (const bool store : {false, true})
      for (std::size_t i = done; i < done + count; ++i)
        if (references_[i].is_store == store) chunk_.references.push_back(references_[i]);
    chunk_.instructions.push_back(instruction);
    if (place.address() >> 63 != 0) ++summary_.kernel_instructions;
    done += count;
  } while (done < references_.size());
}

void Weaver::emit_devices() {
  for (const DeviceAccess& access : devices_) {
    chunk_.events.push_back({Event::Kind::device,
                             static_cast<std::uint32_t>(chunk_.instructions.size()),
                             static_cast<std::uint32_t>(chunk_.devices.size())});
    chunk_.devices.push_back(access);
  }
  devices_.clear();
}

void Weaver::flush() {
  for (const CopyCall& call : chunk_.copies)
    if (sites_.size() < most_sites) sites_.insert(call.site);
  writer_.add(chunk_);
  chunk_.clear();
}

void Weaver::finish() {
  if (held_ != Place::none) {
    emit(false);
    emit_devices();
    if (tracker_.open()) tracker_.interrupt(0, 0);
  }
  flush();
}

}  // namespace bcisim
