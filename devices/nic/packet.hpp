// Frames by AF_PACKET sockets: how every lane sends, and how a lane without registered memory
// receives. The kernel copies a fragment's bytes from its source into the frame, and from the frame
// to its destination. One thread at a time.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstdint>

#include "devices/nic/frame.h"
#include "devices/nic/stream.hpp"
#include "devices/nic/trial.hpp"

namespace haul::nic {

// A descriptor, closed at the end.
class PortSocket {
 public:
  PortSocket() = default;
  ~PortSocket() { close(); }
  PortSocket(const PortSocket&) = delete;
  PortSocket& operator=(const PortSocket&) = delete;
  // A negative number, with errno, is none.
  bool take(int fd) noexcept;
  int fd() const noexcept { return fd_; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

// While this AF_PACKET socket is open, the port takes in every frame: a card takes in what is for
// itself alone, which a lane's frames are not. Promiscuous, as paper 004 has it (2.1).
void hear_all(int fd, unsigned interface) noexcept;

// A lane's frames are told apart by these.
struct LaneName {
  std::uint16_t index = 0;
  std::uint64_t key = 0;
};

class PacketSender {
 public:
  // In the port's network namespace. False: errno.
  bool open(unsigned interface) noexcept;
  // Sends fragments from stream.sent() on, at most `most`, and counts them. False: the port takes
  // no frames any more, or a source is no readable memory.
  bool send(FragmentStream& stream, unsigned most, LaneName lane, FrameTrial& trial,
            std::uint64_t now_ns) noexcept;
  void close() noexcept { socket_.close(); }

 private:
  static constexpr unsigned most_at_once = 32;

  // What has been put together for one system call.
  struct Batch {
    nic_header headers[most_at_once];
    iovec parts[most_at_once][2];
    mmsghdr messages[most_at_once];
    unsigned count = 0;
  };
  void put(const Fragment& fragment, std::uint64_t number, std::uint32_t turn,
           LaneName lane) noexcept;
  void copy_last() noexcept;
  void swap_last() noexcept;

  PortSocket socket_;
  Batch batch_;
};

class PacketReceiver {
 public:
  // In the port's network namespace. False: errno.
  bool open(unsigned interface, LaneName lane) noexcept;
  // Takes what has come. False: the port is gone, or a destination is no writable memory.
  bool receive(FragmentStream& stream, std::uint64_t now_ns) noexcept;
  void close() noexcept { socket_.close(); }

 private:
  static constexpr unsigned most_at_once = 32;

  bool filter(LaneName lane) noexcept;

  PortSocket socket_;
  LaneName lane_;
  nic_header headers_[most_at_once];
  iovec parts_[most_at_once][2];
  mmsghdr messages_[most_at_once];
};

}  // namespace haul::nic
