#include "format/coding/frame_encoder.hpp"

namespace bcisim {

using namespace layout;

namespace {

// Writes the number of a thing that was defined before. Otherwise defines it and writes that a
// definition follows, which is the caller's to write; false then.
template <typename Thing>
bool put_known(Bytes& column, NumberOfThing<Thing>& things, const Thing& thing) {
  const std::uint32_t number = things.find(thing);
  const bool is_known = number != things.unknown;
  put_varint(column, is_known ? number + std::uint64_t{1} : 0);
  if (!is_known) things.define(thing);
  return is_known;
}

}  // namespace

std::uint32_t FrameEncoder::add_static(const StaticInstruction& instruction) {
  if (!rules::valid(instruction)) throw FrameError("a static instruction breaks its rules");
  if (statics_.size() == most_statics)
    throw FrameError("there are more static instructions than a trace can hold (4194304)");
  const StaticInstruction before = last_static();
  const std::uint64_t expected = before.address + before.bytes;
  put_signed(columns_[static_addresses], instruction.address - expected);
  const std::uint64_t expected_page =
      before.physical_page + (instruction.address >> page_shift) - (before.address >> page_shift);
  put_signed(columns_[static_pages], instruction.physical_page - expected_page);
  const Form form{instruction.reads, instruction.writes, instruction.steps, instruction.bytes,
                  static_cast<std::uint8_t>(instruction.kind)};
  if (!put_known(columns_[static_forms], forms_, form)) {
    Bytes& column = columns_[form_definitions];
    column.push_back(form.bytes);
    column.push_back(form.kind);
    for (const std::uint64_t mask : {form.reads, form.writes, form.steps}) put_varint(column, mask);
  }
  append_static(instruction);
  ++statics_of_frame_;
  return static_cast<std::uint32_t>(totals_.statics - 1);
}

void FrameEncoder::settle_previous(bool expected_taken) {
  if (instructions_ == 0 || previous_taken_ == expected_taken) return;
  put_varint(columns_[taken_exceptions], instructions_ - 1 - taken_exception_);
  taken_exception_ = instructions_ - 1;
}

void FrameEncoder::add_path(std::uint32_t what) {
  const Successors::Expected expected = successors_.first(previous_);
  const std::uint32_t fresh = successors_.fresh();
  if (what == expected.next) {
    settle_previous(expected.taken);
    ++run_;
    return;
  }
  const bool taken = is_taken(previous_, what);
  settle_previous(taken);
  if (expected.next == Successors::none && what == fresh) {
    ++run_;
    successors_.learn(previous_, what, taken);
    return;
  }
  Bytes& column = columns_[path];
  put_varint(column, run_);
  run_ = 0;
  unsigned other = 0;
  while (other < successors_.others(previous_) && successors_.other(previous_, other) != what)
    ++other;
  if (other < successors_.others(previous_)) {
    put_varint(column, other + std::uint64_t{2});
    return;
  }
  if (what == fresh) {
    put_varint(column, 1);
  } else {
    put_varint(column, 0);
    put_varint(column, what);
  }
  successors_.learn(previous_, what, taken);
}

void FrameEncoder::add_shape(Place& place, const Shape& shape) {
  if (place.known) {
    if (place.shape == shape) return;
    put_varint(columns_[shape_exceptions], instructions_ - shape_exception_);
    shape_exception_ = instructions_;
  }
  if (!put_known(columns_[shapes], shapes_, shape)) {
    Bytes& column = columns_[shape_definitions];
    column.push_back(shape.references);
    for (unsigned i = 0; i < shape.references; ++i) put_varint(column, shape.bytes[i]);
  }
  set_shape(place, shape);
}

void FrameEncoder::add_reference(std::uint32_t slot, const Reference& reference) {
  std::uint64_t distance = 0;
  const std::uint8_t code = addresses_.encode(slot, reference.address, distance);
  columns_[address_codes].push_back(code);
  if (code >= Addresses::explicit_code) put_signed(columns_[address_values], distance);
  const std::uint64_t page = reference.address >> page_shift;
  const std::uint64_t physical = reference.physical >> page_shift;
  const std::uint64_t expected = pages_.expected(page);
  if (physical != expected) {
    put_varint(columns_[page_exceptions], references_ - page_exception_);
    page_exception_ = references_;
    put_signed(columns_[page_exceptions], physical - expected);
  }
  pages_.learn(page, physical);
  ++references_;
}

void FrameEncoder::add(const DynamicInstruction& instruction,
                       std::span<const Reference> references) {
  if (instruction.what >= statics_.size())
    throw FrameError("an instruction is of an index that add_static() has not given");
  if (references.size() > most_references)
    throw FrameError("an instruction has more than 8 references");
  Shape shape;
  shape.references = static_cast<std::uint8_t>(references.size());
  for (std::size_t i = 0; i < references.size(); ++i) {
    const Reference& reference = references[i];
    if (!rules::valid(reference))
      throw FrameError(
          "a reference is longer than 512 bytes, crosses a page or has a physical "
          "address that is not as far into its page as the virtual one");
    if (i != 0 && references[i - 1].is_store && !reference.is_store)
      throw FrameError("an instruction has a store before a load");
    shape.bytes[i] = static_cast<std::uint16_t>(2 * reference.bytes + (reference.is_store ? 1 : 0));
  }
  add_path(instruction.what);
  Place& place = places_[instruction.what];
  add_shape(place, shape);
  for (std::size_t i = 0; i < references.size(); ++i)
    add_reference(place.slots + static_cast<std::uint32_t>(i), references[i]);
  previous_ = instruction.what;
  previous_taken_ = instruction.taken;
  ++instructions_;
  ++totals_.instructions;
  totals_.references += references.size();
}

void FrameEncoder::add_event(EventCode code) {
  put_varint(columns_[layout::events], instructions_ - event_);
  event_ = instructions_;
  columns_[layout::events].push_back(static_cast<std::uint8_t>(code));
  ++events_;
  ++totals_.events;
}

void FrameEncoder::add_region(std::uint64_t address, std::uint64_t& last,
                              const std::vector<std::uint64_t>& pages, std::uint64_t bytes) {
  if (!rules::valid_region(address, bytes) || pages.size() != rules::pages_of(address, bytes))
    throw FrameError("a copy has no bytes, too many or not a physical page for each virtual one");
  Bytes& column = columns_[layout::events];
  put_signed(column, address - last);
  last = address;
  std::uint64_t page = address >> page_shift;
  for (const std::uint64_t physical : pages) {
    if (physical > most_page) throw FrameError("a copy has a physical page beyond 2^52");
    put_signed(column, physical - pages_.expected(page));
    pages_.learn(page++, physical);
  }
}

void FrameEncoder::begin_copy(const CopyCall& call) {
  if (static_cast<unsigned>(call.kind) >= copy_kinds)
    throw FrameError("a copy is of no known kind");
  if (call.kind == CopyKind::fill && !call.source_pages.empty())
    throw FrameError("a fill has source pages");
  copies_.begin();
  add_event(EventCode::copy_begin);
  Bytes& column = columns_[layout::events];
  column.push_back(static_cast<std::uint8_t>(call.kind));
  if (!put_known(column, site_numbers_, call.site)) {
    sites_.define({call.site, 0, 0});
    put_varint(column, call.site);
  }
  put_varint(column, call.bytes);
  CopySite& site = sites_[site_numbers_.find(call.site)];
  add_region(call.destination, site.destination, call.destination_pages, call.bytes);
  if (call.kind != CopyKind::fill)
    add_region(call.source, site.source, call.source_pages, call.bytes);
  ++totals_.copies;
}

void FrameEncoder::end_copy() {
  copies_.end();
  add_event(EventCode::copy_end);
}

void FrameEncoder::add_device(const DeviceAccess& access) {
  if (!rules::valid(access)) throw FrameError("a device's access has no bytes or too many");
  add_event(access.writes ? EventCode::device_write : EventCode::device_read);
  put_signed(columns_[layout::events], access.physical - device_end_);
  put_varint(columns_[layout::events], access.bytes);
  device_end_ = access.physical + access.bytes;
  ++totals_.devices;
}

void FrameEncoder::add_interrupt() {
  add_event(EventCode::interrupt);
}

bool FrameEncoder::full() const {
  return instructions_ >= most_instructions ||
         references_ + most_references > most_references_of_frame || events_ >= most_events ||
         statics_of_frame_ >= most_statics_of_frame ||
         columns_[layout::events].size() > most_column_bytes / 2;
}

void FrameEncoder::close(Compressor& compressor, Bytes& payload) {
  settle_previous(false);
  put_varint(columns_[path], run_);
  payload.clear();
  put_varint(payload, statics_of_frame_);
  put_varint(payload, instructions_);
  put_varint(payload, references_);
  put_varint(payload, events_);
  for (Bytes& column : columns_) {
    compressor.append(payload, column);
    column.clear();
  }
  statics_of_frame_ = instructions_ = references_ = events_ = 0;
  run_ = 0;
  shape_exception_ = taken_exception_ = page_exception_ = event_ = 0;
}

}  // namespace bcisim
