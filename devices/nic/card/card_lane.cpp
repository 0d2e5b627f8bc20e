#include "devices/nic/card/card_lane.hpp"

#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace haul::nic {
namespace {

// Larger ones cost the CPU less, and waste more of each frame on its header (measured:
// docs/results/2026-11-27.md).
constexpr std::size_t usual_buffer_bytes = 1024;
constexpr unsigned frames_at_once = 16;
// Longer than a card is deaf after it has been started.
constexpr std::uint64_t most_clearing_ns = 3'000'000'000;
// How long frames may be on their way: by a cable that ends in another program's socket, and not.
constexpr std::uint64_t patience_of_cable_ns = 5'000'000, patience_within_ns = 100'000;

}  // namespace

bool CardLane::open(const char* address, const Choices& choices, char* sentence,
                    std::size_t bytes) noexcept {
  PciIdentity identity;
  if (!VfioDevice::identify(address, &identity, sentence, bytes)) return false;
  model_ = card_model(identity.vendor, identity.device);
  if (model_ == nullptr) {
    std::snprintf(
        sentence, bytes,
        "%s is %04x:%04x, which haul has no driver of; take one of %s, or its port by the "
        "word packet",
        address, identity.vendor, identity.device, known_cards);
    return false;
  }
  if (!device_.open(address, sentence, bytes)) return false;
  if (getrandom(&key_, sizeof key_, 0) != sizeof key_ || key_ == 0)
    key_ = reinterpret_cast<std::uintptr_t>(this) | 1;
  trial_.start(choices.trial);
  plugged_ = choices.plugged;
  regions_.start(device_);
  card_.reset(*model_, device_.registers());
  if (!place(choices, sentence, bytes)) {
    device_.close();
    return false;
  }
  const bool lets = device_.let_access_memory(true);
  if (lets && card_.start(wire_.receive_ring(), wire_.send_ring(), buffer_bytes_, choices.plugged))
    return true;
  stop();
  device_.close();
  if (lets) {
    std::snprintf(sentence, bytes, "the card %s (%s) has no link; %s", address, model_->name,
                  choices.plugged ? "plug the loop in, or leave the word plugged out"
                                  : "restart the machine, or take another card");
  } else {
    std::snprintf(sentence, bytes,
                  "the card %s (%s) cannot be let access memory; see what Linux' log says of "
                  "vfio-pci",
                  address, model_->name);
  }
  return false;
}

bool CardLane::place(const Choices& choices, char* sentence, std::size_t bytes) noexcept {
  buffer_bytes_ = choices.buffer != 0 ? choices.buffer : usual_buffer_bytes;
  const std::size_t most = model_->most_frame_bytes / buffer_bytes_ - 1;
  std::size_t buffers = most;
  if (choices.fragment != 0)
    buffers = std::clamp<std::size_t>(choices.fragment / buffer_bytes_, 1, most);
  const std::size_t frame_bytes = (buffers + 1) * buffer_bytes_;
  const std::size_t wanted = CardWire::memory_bytes(buffer_bytes_, frame_bytes);
  void* const memory = mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  std::uint64_t region = 0, shift = 0;
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  if (memory == MAP_FAILED || madvise(memory, wanted, MADV_DONTFORK) != 0 ||
      regions_.add(start, wanted, &region) != Code::ok ||
      !regions_.find(region, start, wanted, &shift)) {
    std::snprintf(sentence, bytes,
                  "the card gets no memory for its rings (%zu KiB); raise ulimit -l", wanted >> 10);
    if (memory != MAP_FAILED) munmap(memory, wanted);
    return false;
  }
  wire_.place(memory, start + shift, buffer_bytes_, frame_bytes, model_->part_boundary);
  stream_.start(buffers * buffer_bytes_, CardWire::most_frames);
  return true;
}

bool CardLane::stop() noexcept {
  card_.stop();
  return device_.let_access_memory(false);
}

bool CardLane::reaches(const Piece& piece) const noexcept {
  std::uint64_t shift = 0;
  return regions_.find(piece.dst_region, piece.dst, piece.length, &shift) &&
         regions_.find(piece.src_region, piece.src, piece.length, &shift);
}

bool CardLane::take(const Piece& piece, std::uint64_t tag) noexcept {
  Load load{
      tag, piece.dst, piece.src, piece.length, 0, piece.length % buffer_bytes_, piece.watermark,
      0,   0};
  if (load.end == load.length) {
    std::memcpy(reinterpret_cast<void*>(piece.dst), reinterpret_cast<const void*>(piece.src),
                piece.length);
    piece.watermark.publish(piece.length);
    return true;
  }
  regions_.find(piece.dst_region, piece.dst, piece.length, &load.dst_shift);
  regions_.find(piece.src_region, piece.src, piece.length, &load.src_shift);
  stream_.add(load);
  return false;
}

void CardLane::send(std::uint64_t now_ns) noexcept {
  if (clearing_) return;
  const unsigned most = std::min(stream_.sendable(), frames_at_once);
  nic_header header = blank_header();
  header.turn = stream_.turn();
  header.key = key_;
  unsigned count = 0;
  for (; count < most; ++count) {
    header.sequence = stream_.sent() + count;
    const Fragment fragment = stream_.fragment(header.sequence);
    if (!wire_.has_room(fragment.bytes / buffer_bytes_ + 1)) break;
    header.bytes = static_cast<std::uint32_t>(fragment.bytes);
    wire_.put(header, fragment.dst + fragment.dst_shift, fragment.src + fragment.src_shift, trial_);
  }
  if (count == 0) return;
  wire_.ring(card_);
  stream_.send(count, now_ns);
}

bool CardLane::receive(std::uint64_t now_ns) noexcept {
  unsigned good = 0;
  std::uint32_t turn = 0;
  CardWire::Came came;
  while ((came = wire_.look(key_, stream_.arrived() + good, &turn)) == CardWire::Came::fragment) {
    wire_.take();
    ++good;
    if (turn != stream_.turn()) stream_.came_late();
  }
  stream_.arrive(good, now_ns);
  if (came == CardWire::Came::other) stream_.came_early();
  if (!stream_.give_up(now_ns)) return true;
  wire_.begin_to_clear(now_ns, plugged_ ? patience_of_cable_ns : patience_within_ns);
  clearing_ = true;
  return !stream_.hopeless(now_ns);
}

bool CardLane::advance(std::uint64_t now_ns) noexcept {
  if (!clearing_) {
    if (!receive(now_ns)) return false;
  } else if (wire_.clear(card_, now_ns)) {
    clearing_ = false;
  } else if (wire_.cleared_for_ns(now_ns) > most_clearing_ns) {
    return false;
  }
  send(now_ns);
  return true;
}

}  // namespace haul::nic
