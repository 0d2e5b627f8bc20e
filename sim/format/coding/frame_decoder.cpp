#include "format/coding/frame_decoder.hpp"

#include <algorithm>

namespace bcisim {

using namespace layout;

namespace {

std::size_t count_of(ByteReader& payload, std::size_t most) {
  const std::uint64_t count = payload.varint();
  if (count > most) throw FrameError("it holds more than a frame may");
  return static_cast<std::size_t>(count);
}

// The thing whose number comes next in `column`; a new one is read by `definition`. `unknown`: what
// is wrong where no such number was defined.
template <typename Thing, typename Definition>
Thing& thing_of(ByteReader& column, NumberedThings<Thing>& things, const char* unknown,
                Definition&& definition) {
  std::uint64_t number = column.varint();
  if (number == 0) {
    number = things.define(definition());
  } else if (--number >= things.size()) {
    throw FrameError(unknown);
  }
  return things[static_cast<std::size_t>(number)];
}

}  // namespace

void FrameDecoder::Exceptions::advance() {
  if (column.empty()) {
    next = never;
    return;
  }
  const std::uint64_t gap = column.varint();
  if (gap > most_references_of_frame) throw FrameError("something in it lies behind its end");
  next += static_cast<std::size_t>(gap);
}

void FrameDecoder::open(ByteReader payload) {
  const std::size_t statics = count_of(payload, most_statics_of_frame);
  instructions_ = count_of(payload, most_instructions);
  references_ = count_of(payload, most_references_of_frame);
  events_ = count_of(payload, most_events);
  for (unsigned i = 0; i < columns; ++i) {
    decompressor_.take(payload, columns_[i]);
    readers_[i] = ByteReader(columns_[i]);
  }
  if (!payload.empty()) throw FrameError("it is longer than its columns");
  if (readers_[address_codes].left() != references_)
    throw FrameError("it has more or fewer references than it says");
  add_statics(statics);
  if (instructions_ != 0 && statics_.empty())
    throw FrameError("it has instructions before the first static one");
  position_ = reference_ = event_ = 0;
  shape_exceptions_ = {readers_[shape_exceptions]};
  taken_exceptions_ = {readers_[taken_exceptions]};
  page_exceptions_ = {readers_[page_exceptions]};
  event_positions_ = {readers_[layout::events]};
  for (Exceptions* some :
       {&shape_exceptions_, &taken_exceptions_, &page_exceptions_, &event_positions_})
    some->start();
  run_ = readers_[path].varint();
  bool ignored = false;
  if (instructions_ != 0) upcoming_ = follow(previous_, ignored);
  open_ = true;
}

void FrameDecoder::add_statics(std::size_t count) {
  if (statics_.size() + count > most_statics)
    throw FrameError("it holds more static instructions than a trace may");
  for (std::size_t i = 0; i < count; ++i) {
    const StaticInstruction before = last_static();
    StaticInstruction next;
    next.address = before.address + before.bytes + readers_[static_addresses].signed_varint();
    next.physical_page = before.physical_page + (next.address >> page_shift) -
                         (before.address >> page_shift) + readers_[static_pages].signed_varint();
    const Form& form = thing_of(readers_[static_forms], forms_,
                                "a static instruction in it is of an unknown form", [this] {
                                  ByteReader& column = readers_[form_definitions];
                                  Form read;
                                  read.bytes = column.byte();
                                  read.kind = column.byte();
                                  read.reads = column.varint();
                                  read.writes = column.varint();
                                  read.steps = column.varint();
                                  return read;
                                });
    next.reads = form.reads;
    next.writes = form.writes;
    next.steps = form.steps;
    next.bytes = form.bytes;
    next.kind = static_cast<InstructionClass>(form.kind);
    if (!rules::valid(next)) throw FrameError("a static instruction in it breaks the rules");
    append_static(next);
  }
}

inline std::uint32_t FrameDecoder::follow(std::uint32_t from, bool& taken) {
  const Successors::Expected expected = successors_.first(from);
  if (run_ != 0 && expected.next != Successors::none) [[likely]] {
    --run_;
    taken = expected.taken;
    return expected.next;
  }
  return follow_unexpected(from, taken);
}

std::uint32_t FrameDecoder::follow_unexpected(std::uint32_t from, bool& taken) {
  std::uint64_t next = successors_.fresh();
  bool learn = true;
  if (run_ != 0) {
    --run_;
  } else {
    const std::uint64_t code = readers_[path].varint();
    if (code == 0) {
      next = readers_[path].varint();
    } else if (code != 1) {
      if (code - 2 >= successors_.others(from))
        throw FrameError("its path leads to an unknown successor");
      next = successors_.other(from, static_cast<unsigned>(code - 2));
      learn = false;
    }
    run_ = readers_[path].varint();
  }
  if (next >= statics_.size()) throw FrameError("its path leads to an unknown instruction");
  const auto found = static_cast<std::uint32_t>(next);
  taken = is_taken(from, found);
  if (learn) successors_.learn(from, found, taken);
  return found;
}

void FrameDecoder::read_shape(Place& place) {
  if (place.known) shape_exceptions_.advance();
  set_shape(place,
            thing_of(readers_[shapes], shapes_, "an instruction in it is of an unknown shape",
                     [this] { return read_new_shape(); }));
}

Shape FrameDecoder::read_new_shape() {
  ByteReader& column = readers_[shape_definitions];
  Shape shape;
  shape.references = column.byte();
  if (shape.references > most_references) throw FrameError("a shape in it is too long");
  for (unsigned i = 0; i < shape.references; ++i) {
    const std::uint64_t bytes = column.varint();
    if (bytes < 2 || bytes > 2 * most_reference_bytes + 1)
      throw FrameError("a reference in it is of no bytes or of too many");
    shape.bytes[i] = static_cast<std::uint16_t>(bytes);
    if (i != 0 && shape.bytes[i - 1] % 2 > shape.bytes[i] % 2)
      throw FrameError("a shape in it has a store before a load");
  }
  return shape;
}

// The unusual part of read_instructions(): an explicit address.
std::uint64_t FrameDecoder::read_address(std::uint32_t slot, std::uint8_t code) {
  if (code >= Addresses::codes) throw FrameError("an address in it has no known code");
  return addresses_.decode_explicit(slot, code, readers_[address_values].signed_varint());
}

// And another physical page than expected.
std::uint64_t FrameDecoder::read_page(std::uint64_t expected) {
  const std::uint64_t physical = expected + page_exceptions_.column.signed_varint();
  page_exceptions_.advance();
  if (physical > most_page) throw FrameError("a physical page in it lies beyond 2^52");
  return physical;
}

// The inner loops of every replay keep what they need in variables of their own, which stores into
// the chunk cannot touch. The path comes first, its references behind: so a processor guesses well
// how each loop goes on.
void FrameDecoder::read_instructions(std::size_t stop, Chunk& chunk) {
  std::size_t position = position_, made = made_references_;
  std::uint32_t what = upcoming_;
  DynamicInstruction* to = &chunk.instructions[made_instructions_];
  while (position != stop) {
    Place& place = places_[what];
    if (!place.known || position == shape_exceptions_.next) [[unlikely]] {
      read_references(chunk, made);
      read_shape(place);
    }
    const unsigned count = place.shape.references;
    if (awaited_references_.size() < made + most_references) [[unlikely]]
      awaited_references_.resize(made + 64 * most_references);
    AwaitedReference* const awaited = &awaited_references_[made];
    // Two at once without asking: few instructions have more.
    awaited[0] = {place.slots, place.shape.bytes[0]};
    awaited[1] = {place.slots + 1, place.shape.bytes[1]};
    for (unsigned i = 2; i < count; ++i) awaited[i] = {place.slots + i, place.shape.bytes[i]};
    to->what = what;
    to->first_reference = static_cast<std::uint32_t>(made);
    to->references = static_cast<std::uint8_t>(count);
    made += count;
    previous_ = what;
    bool taken = false;
    if (position + 1 != instructions_) [[likely]]
      what = follow(what, taken);
    if (position == taken_exceptions_.next) [[unlikely]] {
      taken = !taken;
      taken_exceptions_.advance();
    }
    to->taken = taken;
    ++to;
    ++position;
  }
  upcoming_ = what;
  made_instructions_ += position - position_;
  position_ = position;
  read_references(chunk, made);
}

// Those of the chunk from made_references_ up to `stop`.
void FrameDecoder::read_references(Chunk& chunk, std::size_t stop) {
  if (chunk.references.size() < stop) chunk.references.resize(stop + 64 * most_references);
  const std::size_t count = stop - made_references_;
  if (count == 0) return;
  const std::span<const std::uint8_t> codes = readers_[address_codes].bytes(count);
  const AwaitedReference* const awaited = &awaited_references_[made_references_];
  Reference* const to = &chunk.references[made_references_];
  for (std::size_t i = 0; i != count; ++i) {
    const std::uint8_t code = codes[i];
    const std::uint32_t slot = awaited[i].slot;
    const std::uint64_t address =
        code < Addresses::explicit_code ? addresses_.decode(slot, code) : read_address(slot, code);
    const std::uint64_t page = address >> page_shift;
    std::uint64_t physical = pages_.expected(page);
    if (reference_ + i == page_exceptions_.next) [[unlikely]]
      physical = read_page(physical);
    pages_.learn(page, physical);
    const std::uint64_t into = address % page_bytes;
    const unsigned bytes = awaited[i].shape / 2u;
    if (into + bytes > page_bytes) [[unlikely]]
      throw FrameError("a reference in it crosses a page");
    to[i] = {address, physical * page_bytes + into, static_cast<std::uint16_t>(bytes),
             awaited[i].shape % 2 != 0};
  }
  reference_ += count;
  made_references_ = stop;
}

bool FrameDecoder::next(Chunk& chunk) {
  if (!open_) return false;
  const std::size_t target =
      position_ + std::min(instructions_ - position_, most_instructions_of_chunk);
  chunk.instructions.resize(target - position_);
  made_instructions_ = made_references_ = 0;
  while (true) {
    while (event_positions_.next == position_ && (position_ != target || target == instructions_)) {
      read_event(chunk, made_instructions_);
      event_positions_.advance();
    }
    if (position_ == target) break;
    read_instructions(std::min(target, event_positions_.next), chunk);
  }
  chunk.references.resize(made_references_);
  totals_.instructions += made_instructions_;
  totals_.references += made_references_;
  totals_.events += chunk.events.size();
  totals_.copies += chunk.copies.size();
  totals_.devices += chunk.devices.size();
  event_ += chunk.events.size();
  if (position_ == instructions_) finish_frame();
  return true;
}

void FrameDecoder::finish_frame() {
  open_ = false;
  bool whole = run_ == 0 && event_ == events_;
  for (const Exceptions* some :
       {&shape_exceptions_, &taken_exceptions_, &page_exceptions_, &event_positions_})
    whole = whole && some->next == never;
  for (const Column column : {path, shapes, shape_definitions, address_codes, address_values,
                              static_addresses, static_pages, static_forms, form_definitions})
    whole = whole && readers_[column].empty();
  if (!whole) throw FrameError("its columns do not end with its instructions");
}

void FrameDecoder::read_event(Chunk& chunk, std::size_t before) {
  ByteReader& column = event_positions_.column;
  Event event;
  event.before = static_cast<std::uint32_t>(before);
  const std::uint8_t code = column.byte();
  switch (static_cast<EventCode>(code)) {
    case EventCode::copy_begin: {
      copies_.begin();
      event.kind = Event::Kind::copy_begin;
      event.index = static_cast<std::uint32_t>(chunk.copies.size());
      read_copy(chunk.copies.emplace_back());
      break;
    }
    case EventCode::copy_end:
      copies_.end();
      event.kind = Event::Kind::copy_end;
      break;
    case EventCode::device_read:
    case EventCode::device_write: {
      event.kind = Event::Kind::device;
      event.index = static_cast<std::uint32_t>(chunk.devices.size());
      DeviceAccess& access = chunk.devices.emplace_back();
      access.physical = device_end_ + column.signed_varint();
      access.bytes = column.varint();
      access.writes = static_cast<EventCode>(code) == EventCode::device_write;
      if (!rules::valid(access)) throw FrameError("a device's access in it breaks the rules");
      device_end_ = access.physical + access.bytes;
      break;
    }
    case EventCode::interrupt: event.kind = Event::Kind::interrupt; break;
    default: throw FrameError("an event in it is of no known kind");
  }
  chunk.events.push_back(event);
}

void FrameDecoder::read_copy(CopyCall& call) {
  ByteReader& column = event_positions_.column;
  const std::uint8_t kind = column.byte();
  if (kind >= copy_kinds) throw FrameError("a copy in it is of no known kind");
  call.kind = static_cast<CopyKind>(kind);
  CopySite& site = thing_of(column, sites_, "a copy in it is of an unknown site", [&column] {
    return CopySite{column.varint(), 0, 0};
  });
  call.site = site.site;
  call.bytes = column.varint();
  read_region(call.destination, site.destination, call.bytes, call.destination_pages);
  if (call.kind != CopyKind::fill)
    read_region(call.source, site.source, call.bytes, call.source_pages);
}

void FrameDecoder::read_region(std::uint64_t& address, std::uint64_t& last, std::uint64_t bytes,
                               std::vector<std::uint64_t>& pages) {
  ByteReader& column = event_positions_.column;
  address = last + column.signed_varint();
  last = address;
  if (!rules::valid_region(address, bytes))
    throw FrameError("a copy in it has an impossible region");
  const std::size_t count = rules::pages_of(address, bytes);
  std::uint64_t page = address >> page_shift;
  if (count > column.left()) throw FrameError("a copy in it has too few pages");
  pages.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t physical = pages_.expected(page) + column.signed_varint();
    if (physical > most_page) throw FrameError("a physical page in it lies beyond 2^52");
    pages_.learn(page++, physical);
    pages.push_back(physical);
  }
}

}  // namespace bcisim
