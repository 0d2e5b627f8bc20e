// A lane: a looped port and the pieces that go through it. It sends by AF_PACKET; it receives by
// AF_PACKET, or by AF_XDP into the one region of memory that is registered for it. One thread at a
// time drives it; open() and close() are called while it has no pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/nic/loop.hpp"
#include "devices/nic/packet.hpp"
#include "devices/nic/program.hpp"
#include "devices/nic/stream.hpp"
#include "devices/nic/xsk.hpp"

namespace haul::nic {

class Lane {
 public:
  // In the port's namespace, as is the next one. False: errno.
  bool open(const Port& port, std::uint16_t index, const Choices& choices) noexcept;
  // The same with a region that is registered for it. 0 or an errno; EBUSY: another program has
  // the port.
  int open(const Port& port, std::uint16_t index, const Choices& choices, PortProgram& program,
           std::uintptr_t address, std::size_t bytes) noexcept;
  // The kernel writes nothing to pieces' memory any more.
  void close() noexcept;
  bool is_open() const noexcept { return open_; }
  bool idle() const noexcept { return stream_.idle(); }

  // Takes a piece, for which it has room. True: there is nothing to send of it, and it is copied.
  bool take(const Piece& piece, std::uint64_t tag) noexcept;
  bool has_room() const noexcept { return stream_.has_room(); }
  // Is the piece's destination memory that this lane reaches?
  bool reaches(const Piece& piece) const noexcept;
  // Sends what may be sent. False, here and in the next one: the lane is dead.
  bool send(std::uint64_t now_ns) noexcept;
  bool advance(std::uint64_t now_ns) noexcept;
  std::size_t finish(Finished* finished, std::size_t most) noexcept {
    return stream_.finish(finished, most);
  }
  void fail() noexcept { stream_.fail(Code::io); }

 private:
  void start(const Port& port, std::uint16_t index, const Choices& choices,
             std::size_t most_bytes) noexcept;

  FragmentStream stream_;
  LaneName name_;
  FrameTrial trial_;
  PacketSender sender_;
  PacketReceiver packet_;
  XskReceiver xsk_;
  PortProgram* program_ = nullptr;  // nullptr: it receives by AF_PACKET
  std::uintptr_t address_ = 0;
  std::size_t bytes_ = 0;
  bool open_ = false;
};

}  // namespace haul::nic
