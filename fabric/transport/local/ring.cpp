// The ring: packets through memory that two processes share.
#include "fabric/transport/local/ring.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/os/os.hpp"

namespace haul::fabric {

namespace {

constexpr std::uint64_t line = 64;
// A packet begins on an even line: processors fetch lines in pairs, so the first of its payload
// comes with its header.
constexpr std::uint64_t grain = 2 * line;
// Credits go back in eighths: each return costs the writer a miss.
constexpr std::uint64_t return_bytes = ring_bytes / 8;
// How much a writer writes before it looks whether it and its reader have moved.
constexpr std::uint64_t look_bytes = ring_bytes / 4;
// What data packets leave free for the other lanes, and eager ones for control packets.
constexpr std::uint64_t control_reserve = ring_bytes / 16;
constexpr std::uint64_t eager_reserve = ring_bytes * 11 / 16;  // for a message in parts

// Of the ring, for a packet whose payload behind the header has this many bytes.
constexpr std::uint64_t space_of(std::uint64_t payload) noexcept {
  return (line + payload + grain - 1) / grain * grain;
}

// The longest message in the longest parts finds room in a ring whose reader has taken everything.
constexpr std::uint64_t most_parts = in_parts_bytes / ring_packet_bytes;
static_assert((most_parts + 1) * space_of(ring_packet_bytes) + most_parts * grain +
                  control_reserve + return_bytes <=
              ring_bytes);

// Asks for lines that the other core has just written, all at once.
void fetch(const std::byte* from, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t most = 2048;
  for (std::uint64_t at = 0; at < bytes && at < most; at += line) __builtin_prefetch(from + at);
}

// Puts lines just written from the writer's caches into the shared one, where the reader finds them
// sooner: on a Sapphire Rapids 0.05 to 0.15 us sooner, up to 2 KiB (longer messages are read while
// the rest is written, and 8 KiB took 1.3 times as long). Without that instruction, as on AMD's
// processors, it is none.
void demote(const void* from, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t most = 2048 + grain;
  if (bytes > most) return;
  const auto* lines = static_cast<const std::byte*>(from);
  for (std::uint64_t at = 0; at < bytes; at += line) asm volatile("cldemote %0" : : "m"(lines[at]));
}

// A header's `payload` has the name of its cell above the number of bytes.
constexpr unsigned cell_shift = 24;
constexpr std::uint32_t payload_mask = (std::uint32_t{1} << cell_shift) - 1;
static_assert(ring_packet_bytes <= payload_mask && large_cell_bytes <= payload_mask);

std::atomic<std::uint64_t>& ready_of(Header& header) noexcept {
  static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof header.ready);
  return reinterpret_cast<std::atomic<std::uint64_t>&>(header.ready);
}

// `ready` of the packet that begins at `position`.
std::uint64_t mark(std::uint64_t position, std::uint64_t salt) noexcept {
  return (position + line) ^ salt;
}

}  // namespace

RingOutbox::RingOutbox(RingSegment& segment, Doorbell doorbell, void* argument,
                       const HaulPrivateRing& ring, PairCells* cells) noexcept
    : segment_(segment),
      salt_(segment.salt),
      cells_(cells),
      doorbell_(doorbell),
      argument_(argument) {
  if (cells_ != nullptr) {
    cells_->have_own(segment);
    small_.from = &cells_->small;
    large_.from = &cells_->large;
  }
  write_as(ring);
}

void RingOutbox::write_as(const HaulPrivateRing& ring) noexcept {
  ring_ = ring;
  eager_bytes = std::min(ring.eager_bytes, in_parts_bytes);
  packet_bytes = std::min(ring.eager_bytes, ring_packet_bytes);
  part_bytes = std::min(ring.part_bytes, ring_packet_bytes);
  piece_bytes = std::min(ring.piece_bytes, large_cell_bytes);
  copies_in = ring.copies_in;
  if (whereabouts_.inbox != nullptr) whereabouts_.inbox->read_as(ring);
}

void RingOutbox::follow(const Whereabouts& whereabouts) noexcept {
  whereabouts_ = whereabouts;
  look_at_distance();
}

void RingOutbox::look_at_distance() noexcept {
  looked_at_ = head_;
  const auto& [near, far, cache_of, inbox, reader_cache] = whereabouts_;
  if (cache_of == nullptr) return;
  if (const int cpu = os::current_cpu(); cpu != cpu_) {
    cpu_ = cpu;
    segment_.writer_cache.store(static_cast<std::uint32_t>(cache_of(cpu) + 1),
                                std::memory_order_relaxed);
  }
  const std::uint32_t own = segment_.writer_cache.load(std::memory_order_relaxed);
  const std::uint32_t reader =
      reader_cache != nullptr ? reader_cache->load(std::memory_order_relaxed) : 0;
  write_as(own != 0 && reader != 0 && own != reader ? *far : *near);
}

bool RingOutbox::goes_in_cell(std::size_t payload_bytes) const noexcept {
  return cells_ != nullptr && ring_.cell_from_bytes != 0 && payload_bytes <= cell_bytes &&
         payload_bytes >= ring_.cell_from_bytes;
}

bool RingOutbox::holds(std::size_t bytes) noexcept {
  const std::uint64_t parts = (bytes + part_bytes - 1) / part_bytes;
  const std::uint64_t cells =
      goes_in_cell(part_bytes) ? cells_->small.available(static_cast<unsigned>(parts)) : 0;
  // Each has a header. Besides one part, since the last may be too short for a cell, or what is
  // left empty at the ring's end.
  const std::uint64_t in_ring = 1 + (parts > cells ? parts - cells : 0);
  return has_room(parts * grain + in_ring * space_of(part_bytes), control_reserve);
}

// What lies in a segment that the reader's process has mapped is the reader's, whatever becomes of
// the writer; if the reader ends without a look at it, nobody can tell that from one that looked.
Outbox::Delivery RingOutbox::delivery() noexcept {
  if (!accepted_) accepted_ = segment_.accepted.load(std::memory_order_acquire) != 0;
  return accepted_ ? Delivery::at_once : Delivery::not_yet;
}

// Whether `bytes` more fit and leave keep_free. What the reader claims to have consumed is only
// believed within what was written.
bool RingOutbox::has_room(std::uint64_t bytes, std::uint64_t keep_free) noexcept {
  const std::uint64_t wanted = bytes + keep_free;
  if (head_ + wanted - consumed_ <= ring_bytes) return true;
  const std::uint64_t consumed = segment_.consumed.load(std::memory_order_acquire);
  if (consumed - consumed_ <= head_ - consumed_) consumed_ = consumed;
  return head_ + wanted - consumed_ <= ring_bytes;
}

// A cell of that size, one that an uncommitted slot has left first; nullptr: there is none.
RingOutbox::Taken* RingOutbox::taken(Taken& cell) noexcept {
  if (cell.name == 0 && cell.from != nullptr) cell.name = cell.from->take();
  return cell.name != 0 ? &cell : nullptr;
}

Outbox::Slot RingOutbox::reserve(std::size_t payload_bytes, Lane lane) noexcept {
  const bool bulk = lane == Lane::bulk;
  if (payload_bytes > (bulk ? large_cell_bytes : ring_packet_bytes)) return {};
  const std::uint64_t keep_free = lane == Lane::control ? 0
                                  : bulk                ? eager_reserve
                                                        : control_reserve;
  cell_ = bulk ? taken(large_) : goes_in_cell(payload_bytes) ? taken(small_) : nullptr;
  if (bulk && cell_ == nullptr) return {};
  const std::uint64_t bytes = space_of(cell_ != nullptr ? 0 : payload_bytes);
  const std::uint64_t offset = head_ % ring_bytes;
  const std::uint64_t left = ring_bytes - offset;
  if (left < bytes) {  // a packet is contiguous: fill the end with nothing
    if (!has_room(left + bytes, keep_free)) return {};
    auto& pad = *reinterpret_cast<Header*>(segment_.ring + offset);
    pad.kind = PacketKind::pad;
    pad.flags = 0;
    pad.payload = static_cast<std::uint32_t>(left - line);
    publish(pad, head_);
    head_ += left;
  } else if (!has_room(bytes, keep_free)) {
    return {};
  }
  slot_ = reinterpret_cast<Header*>(segment_.ring + head_ % ring_bytes);
  next_head_ = head_ + bytes;
  std::byte* const payload =
      cell_ != nullptr ? cell_->from->memory(cell_->name) : reinterpret_cast<std::byte*>(slot_ + 1);
  return {slot_, payload};
}

void RingOutbox::publish(Header& header, std::uint64_t position) noexcept {
  ready_of(header).store(mark(position, salt_), std::memory_order_release);
}

// Takes the next lines from the reader's cache, which had them last, while there is nothing to
// write: the next message is as long as this one, more often than not. (A Sapphire Rapids, 16
// KiB: 4.7 us without, 3.8 with.)
void RingOutbox::own_ahead(std::uint64_t bytes) const noexcept {
  for (std::uint64_t at = 0; at < bytes; at += line)
    asm volatile("prefetchw %0" : : "m"(segment_.ring[(head_ + at) % ring_bytes]));
}

void RingOutbox::commit() noexcept {
  const bool part = (slot_->flags & packet_parts) != 0;
  const std::uint64_t space = next_head_ - head_;
  const std::uint32_t payload = slot_->payload;
  std::uint64_t ahead = space;
  if (part) {
    const bool first = slot_->kind == PacketKind::message;
    parted_ = (first ? 0 : parted_) + payload;
    parted_space_ = (first ? 0 : parted_space_) + space;
    const bool last = parted_ == slot_->far.length;
    ahead = last ? std::min(parted_space_, ring_bytes / 2) : 0;
  }
  if (cell_ != nullptr) slot_->payload = payload | std::uint32_t{cell_->name} << cell_shift;
  publish(*slot_, head_);
  if (!part && ring_.demotes) {
    demote(slot_, space);
    if (cell_ != nullptr) demote(cell_->from->memory(cell_->name), payload);
  }
  if (cell_ != nullptr) cell_->from->pass(std::exchange(cell_->name, CellName{0}));
  head_ = next_head_;
  if (ring_.owns_ahead) own_ahead(ahead);
  // (Never between the parts of a message, whose room was found by the size of a part.)
  if (ahead != 0 && head_ - looked_at_ >= look_bytes) look_at_distance();
  // The reader arms and then makes a barrier in every running thread, so this load may be early.
  if (segment_.armed.load(std::memory_order_relaxed) != 0) doorbell_(argument_);
}

RingInbox::RingInbox(RingSegment& segment, PairCells* cells) noexcept
    : segment_(segment), salt_(segment.salt), cells_(cells) {
  if (cells_ != nullptr) cells_->have_peers(segment);
  expect(0);
}

Header& RingInbox::at(std::uint64_t position) const noexcept {
  return *reinterpret_cast<Header*>(segment_.ring + position % ring_bytes);
}

void RingInbox::expect(std::uint64_t position) noexcept {
  position_ = position;
  ready_word = &ready_of(at(position));
  ready_value = mark(position, salt_);
}

Inbox::Got RingInbox::receive(ReceivedPacket& packet) noexcept {
  while (ready()) {
    std::memcpy(static_cast<void*>(&packet.header), &at(position_), sizeof packet.header);
    const Header& header = packet.header;
    cell_ = static_cast<CellName>(header.payload >> cell_shift);
    packet.header.payload &= payload_mask;
    const std::uint64_t left = ring_bytes - position_ % ring_bytes - line;
    if (header.kind == PacketKind::pad) {
      if (header.payload != left || cell_ != 0) return Got::garbage;
      expect(position_ + line + left);
      continue;
    }
    packet.copies_out = copies_out_;
    packet.inbox = this;
    packet_end_ = position_ + space_of(0);
    if ((header.flags & packet_inlined) != 0) {
      if (header.payload > inline_capacity || cell_ != 0) return Got::garbage;
      packet.payload = reinterpret_cast<const std::byte*>(packet.header.bytes);
    } else if (header.kind == PacketKind::data || cell_ != 0) {
      const bool large = header.kind == PacketKind::data;
      if (cells_ == nullptr || header.payload > (large ? large_cell_bytes : cell_bytes))
        return Got::garbage;
      kind_ = large ? &cells_->large : &cells_->small;
      packet.payload = kind_->arrived(cell_);
      if (packet.payload == nullptr) return Got::garbage;
      if (!large) fetch(packet.payload, header.payload);
    } else {
      if (header.payload > ring_packet_bytes || header.payload > left) return Got::garbage;
      packet.payload = reinterpret_cast<const std::byte*>(&at(position_)) + line;
      fetch(packet.payload, header.payload);
      packet_end_ = position_ + space_of(header.payload);
    }
    return Got::packet;
  }
  return Got::nothing;
}

void RingInbox::ask_ahead() const noexcept {
  __builtin_prefetch(&at(packet_end_));
}

RingInbox::NextPayload RingInbox::next_payload() const noexcept {
  Header& next = at(packet_end_);
  if (ready_of(next).load(std::memory_order_acquire) != mark(packet_end_, salt_)) return {};
  // (Read once: the writer may change it.)
  const std::uint32_t payload = std::atomic_ref(next.payload).load(std::memory_order_relaxed);
  const auto cell = static_cast<CellName>(payload >> cell_shift);
  if (cell == 0 || cells_ == nullptr) return {};
  const Cells& kind = next.kind == PacketKind::data ? cells_->large : cells_->small;
  return {kind.arrived(cell), payload & payload_mask};
}

void RingInbox::fetch_ahead() const noexcept {
  constexpr std::uint64_t most = 8 * line;
  const NextPayload next = next_payload();
  if (next.at != nullptr) fetch(next.at, std::min(next.bytes, most));
}

void RingInbox::release() noexcept {
  if (cell_ != 0) kind_->keep(cell_);
  expect(packet_end_);
  if (position_ - returned_ >= return_bytes) {
    returned_ = position_;
    segment_.consumed.store(returned_, std::memory_order_release);
  }
}

}  // namespace haul::fabric
