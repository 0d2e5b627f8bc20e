#include "devices/nic/card/wire.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace haul::nic {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page - 1) / page * page;
}
constexpr std::size_t receive_bytes = CardWire::receive_entries * sizeof(CardDescriptor);
constexpr std::size_t send_bytes = CardWire::send_entries * sizeof(CardDescriptor);

}  // namespace

nic_header blank_header() noexcept {
  constexpr unsigned char nobody[] = {0x02, 'h', 'a', 'u', 'l', 0};
  nic_header header{};
  std::memcpy(header.addresses, nobody, sizeof nobody);
  header.ethertype = htons(NIC_ETHERTYPE);
  return header;
}

std::size_t CardWire::memory_bytes(std::size_t buffer_bytes, std::size_t frame_bytes) noexcept {
  return whole_pages(receive_bytes + send_bytes + (most_frames + send_frames) * buffer_bytes +
                     frame_bytes);
}

void CardWire::place(void* memory, std::uint64_t iova, std::size_t buffer_bytes,
                     std::size_t frame_bytes, std::uint64_t part_boundary) noexcept {
  auto* const start = static_cast<unsigned char*>(memory);
  buffer_bytes_ = buffer_bytes;
  frame_bytes_ = frame_bytes;
  part_boundary_ = part_boundary;
  most_parts_ = static_cast<std::uint32_t>(3 + frame_bytes / part_boundary);
  iova_ = iova;
  receive_ = static_cast<CardDescriptor*>(memory);
  send_ = reinterpret_cast<CardDescriptor*>(start + receive_bytes);
  std::size_t at = receive_bytes + send_bytes;
  blocks_ = start + at;
  blocks_iova_ = iova + at;
  at += most_frames * buffer_bytes;
  headers_ = start + at;
  headers_iova_ = iova + at;
  filling_iova_ = headers_iova_ + send_frames * buffer_bytes;
  // (What is sent as filling is zeros but for its addresses, and has no lane's key.)
  const nic_header filling = blank_header();
  std::memcpy(headers_ + send_frames * buffer_bytes, &filling, sizeof filling);
}

CardRing CardWire::receive_ring() const noexcept {
  return {iova_, receive_entries};
}

CardRing CardWire::send_ring() const noexcept {
  return {iova_ + receive_bytes, send_entries};
}

// (The card says of a frame's last part when it has read the frame.)
void CardWire::note_read() noexcept {
  for (; read_ != sent_; ++read_) {
    const std::uint32_t behind = behind_[read_ % send_frames];
    if ((send_[(behind - 1) % send_entries].state_now() & CardDescriptor::done) == 0) break;
    parts_read_ = behind;
  }
}

bool CardWire::has_room_to_send(std::uint32_t frames) noexcept {
  // (One descriptor stays unused, as a full ring would be like an empty one.)
  const auto fits = [&] {
    return sent_ - read_ + frames <= send_frames &&
           parts_ - parts_read_ + frames * most_parts_ < send_entries;
  };
  if (fits()) return true;
  note_read();
  return fits();
}

bool CardWire::has_room(std::size_t buffers) noexcept {
  // (A frame may be sent twice, and one that was held with it.)
  if (put_ - taken_ >= most_frames || !has_room_to_send(4)) return false;
  const std::uint32_t oldest = put_ != taken_ ? frames_[taken_ % most_frames].first : posted_;
  return posted_ - oldest + buffers + 2 <= receive_entries;
}

void CardWire::send_rest(std::uint64_t address, std::uint64_t bytes) noexcept {
  std::uint64_t room = part_boundary_ - (address & (part_boundary_ - 1));
  for (; bytes > room; room = part_boundary_) {
    send_[parts_++ % send_entries] = {address, CardDescriptor::to_send(room, false)};
    address += room;
    bytes -= room;
  }
  send_[parts_++ % send_entries] = {address, CardDescriptor::to_send(bytes, true)};
  behind_[sent_++ % send_frames] = parts_;
}

void CardWire::send(const nic_header& header, std::uint64_t src) noexcept {
  const std::uint64_t at = sent_ % send_frames * buffer_bytes_;
  std::memcpy(headers_ + at, &header, sizeof header);
  // (It lies within a page.)
  send_[parts_++ % send_entries] = {headers_iova_ + at,
                                    CardDescriptor::to_send(buffer_bytes_, false)};
  send_rest(src, header.bytes);
}

void CardWire::send_held() noexcept {
  if (std::exchange(holds_, false)) send(held_, held_src_);
}

void CardWire::put(const nic_header& header, std::uint64_t dst, std::uint64_t src,
                   FrameTrial& trial) noexcept {
  Posted& frame = frames_[put_ % most_frames];
  frame.first = posted_;
  block(put_).key = 0;
  post(blocks_iova_ + put_ % most_frames * buffer_bytes_);
  for (std::uint64_t at = 0; at < header.bytes; at += buffer_bytes_) post(dst + at);
  frame.count = posted_ - frame.first;
  ++put_;
  if (trial.loses()) return;
  if (!holds_ && trial.swaps()) {
    holds_ = true;
    held_ = header;
    held_src_ = src;
    return;
  }
  send(header, src);
  if (trial.repeats()) send(header, src);
  send_held();
}

void CardWire::ring(GigabitCard& card) noexcept {
  send_held();
  card.ring_receive(posted_ % receive_entries);
  card.ring_send(parts_ % send_entries);
}

CardWire::Came CardWire::look(std::uint64_t key, std::uint64_t expected,
                              std::uint32_t* turn) const noexcept {
  if (put_ == taken_) return Came::nothing;
  const Posted& frame = frames_[taken_ % most_frames];
  const std::uint32_t last = frame.first + frame.count - 1;
  const nic_header& header = block(taken_);
  const bool complete = (receive_[last % receive_entries].state_now() & CardDescriptor::done) != 0;
  // (Of a frame that is too short the last buffer would wait for the next one.)
  if (!complete &&
      (receive_[frame.first % receive_entries].state_now() & CardDescriptor::done) == 0)
    return Came::nothing;
  if (header.key != key || header.sequence != expected ||
      header.bytes != (frame.count - 1) * buffer_bytes_)
    return Came::other;
  if (!complete) return Came::nothing;
  for (std::uint32_t at = frame.first; at != last + 1; ++at) {
    const std::uint64_t state = receive_[at % receive_entries].state;
    if ((state & CardDescriptor::received_mask) !=
        CardDescriptor::received(buffer_bytes_, at == last))
      return Came::other;
  }
  *turn = header.turn;
  return Came::fragment;
}

void CardWire::begin_to_clear(std::uint64_t now_ns, std::uint64_t patience_ns) noexcept {
  used_ = put_ != taken_ ? frames_[taken_ % most_frames].first : posted_;
  begun_ns_ = last_ns_ = now_ns;
  patience_ns_ = patience_ns;
}

void CardWire::fill_up(std::uint32_t buffers) noexcept {
  const auto most = static_cast<std::uint32_t>(frame_bytes_ / buffer_bytes_);
  while (buffers != 0 && has_room_to_send(1)) {
    const std::uint32_t some = std::min(buffers, most);
    send_rest(filling_iova_, some * buffer_bytes_);
    buffers -= some;
  }
}

bool CardWire::clear(GigabitCard& card, std::uint64_t now_ns) noexcept {
  note_read();
  if (read_ != sent_) return false;
  while (used_ != posted_ &&
         (receive_[used_ % receive_entries].state_now() & CardDescriptor::done) != 0) {
    ++used_;
    last_ns_ = now_ns;
  }
  if (used_ == posted_) {
    taken_ = put_;
    return true;
  }
  // What was sent may still be on its way to the buffers.
  if (now_ns - last_ns_ < patience_ns_) return false;
  constexpr std::uint64_t most_patience_ns = 40'000'000;
  patience_ns_ = std::min(2 * patience_ns_, most_patience_ns);
  last_ns_ = now_ns;
  // A frame that waits before the card for more buffers than are left gets them, in memory of the
  // wire's own. Where there are enough for any, none waits.
  const auto most = static_cast<std::uint32_t>(frame_bytes_ / buffer_bytes_);
  if (posted_ - used_ < most) {
    for (std::uint32_t buffer = 0; buffer < most; ++buffer) post(blocks_iova_);
  } else {
    fill_up(posted_ - used_);
  }
  ring(card);
  return false;
}

}  // namespace haul::nic
