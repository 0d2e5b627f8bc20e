#include "devices/nic/lane.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace haul::nic {
namespace {

// Frames under way, and bytes of them: what ports and sockets have room for.
constexpr std::size_t most_frames = 128, most_under_way_bytes = std::size_t{2} << 20;
constexpr unsigned frames_at_once = 16;
constexpr std::size_t shortest_fragment = 64;

}  // namespace

void Lane::start(const Port& port, std::uint16_t index, const Choices& choices,
                 std::size_t most_bytes) noexcept {
  name_.index = index;
  if (getrandom(&name_.key, sizeof name_.key, 0) != sizeof name_.key || name_.key == 0) {
    // (No entropy yet, early at boot: strangers may guess it.)
    name_.key = reinterpret_cast<std::uintptr_t>(this) | 1;
  }
  trial_.start(choices.trial);
  // (An MTU does not count Ethernet's own header.)
  constexpr std::size_t ethernet_bytes = 14;
  std::size_t bytes = std::min(port.mtu + ethernet_bytes - sizeof(nic_header), most_bytes);
  if (choices.fragment != 0) bytes = std::min(bytes, std::max(choices.fragment, shortest_fragment));
  // Fragments of more than one part have whole ones, so that each begins where the last one ended.
  if (program_ != nullptr && bytes > NIC_PART_BYTES) bytes -= bytes % NIC_PART_BYTES;
  const std::size_t window = std::clamp<std::size_t>(most_under_way_bytes / bytes, 1, most_frames);
  stream_.start(bytes, static_cast<unsigned>(window));
}

bool Lane::open(const Port& port, std::uint16_t index, const Choices& choices) noexcept {
  program_ = nullptr;
  start(port, index, choices, SIZE_MAX);
  open_ = packet_.open(port.in, name_) && sender_.open(port.out);
  return open_;
}

int Lane::open(const Port& port, std::uint16_t index, const Choices& choices, PortProgram& program,
               std::uintptr_t address, std::size_t bytes) noexcept {
  program_ = &program;
  address_ = address;
  bytes_ = bytes;
  start(port, index, choices, SIZE_MAX);
  int error = program.attach(index, port) ? 0 : errno;
  const bool in_parts = stream_.fragment_bytes() > NIC_PART_BYTES;
  if (error == 0) error = xsk_.open(port.in, address, bytes, in_parts);
  if (error == EINVAL && in_parts) {
    start(port, index, choices, NIC_PART_BYTES);
    xsk_.close();
    error = xsk_.open(port.in, address, bytes, false);
  }
  if (error == 0 && !sender_.open(port.out)) error = errno;
  if (error == 0) {
    nic_lane& lane = program.lane(index);
    lane.expected = lane.refused = lane.late = lane.early = 0;
    lane.turn = 0;
    lane.interface = port.in;
    // Release: the program sees a lane that is complete.
    __atomic_store_n(&lane.key, name_.key, __ATOMIC_RELEASE);
    if (!program.connect(index, xsk_.fd())) error = errno;
  }
  open_ = error == 0;
  if (!open_) close();
  return error;
}

void Lane::close() noexcept {
  if (program_ != nullptr) {
    __atomic_store_n(&program_->lane(name_.index).key, 0, __ATOMIC_RELAXED);
    program_->disconnect(name_.index);
  }
  xsk_.close();
  packet_.close();
  sender_.close();
  open_ = false;
}

bool Lane::reaches(const Piece& piece) const noexcept {
  return program_ == nullptr || (piece.dst >= address_ && piece.dst - address_ <= bytes_ &&
                                 piece.length <= bytes_ - (piece.dst - address_));
}

bool Lane::take(const Piece& piece, std::uint64_t tag) noexcept {
  Load load{tag, piece.dst, piece.src, piece.length, 0, 0, piece.watermark, 0, 0};
  if (program_ != nullptr)
    xsk_.margins(piece.dst, piece.length, stream_.fragment_bytes(), &load.front, &load.end);
  // No frame is so short that Ethernet pads it, or that XDP refuses to take its header away.
  const std::size_t last = (load.length - load.front - load.end) % stream_.fragment_bytes();
  if (last < shortest_fragment) load.end += last;
  const bool done = load.front + load.end == load.length;
  const std::size_t at_once = done ? load.length : load.front;
  std::memcpy(reinterpret_cast<void*>(piece.dst), reinterpret_cast<const void*>(piece.src),
              at_once);
  if (done) {
    piece.watermark.publish(piece.length);
  } else {
    stream_.add(load);
  }
  return done;
}

bool Lane::send(std::uint64_t now_ns) noexcept {
  // In one call about as much as the largest frame, so that submit() returns soon.
  constexpr std::size_t bytes_at_once = 65536;
  unsigned most = static_cast<unsigned>(
      std::clamp<std::size_t>(bytes_at_once / stream_.fragment_bytes(), 1, frames_at_once));
  if (program_ != nullptr) most = xsk_.prepare(stream_, most);
  if (most == 0 || stream_.sendable() == 0) return true;
  return sender_.send(stream_, most, name_, trial_, now_ns);
}

bool Lane::advance(std::uint64_t now_ns) noexcept {
  const bool received = program_ != nullptr
                            ? xsk_.receive(stream_, program_->lane(name_.index), now_ns)
                            : packet_.receive(stream_, now_ns);
  if (!received || !open_) return false;
  if (stream_.give_up(now_ns)) {
    if (stream_.hopeless(now_ns)) return false;
    if (program_ != nullptr) xsk_.begin_turn(program_->lane(name_.index), stream_.turn());
  }
  return send(now_ns);
}

}  // namespace haul::nic
