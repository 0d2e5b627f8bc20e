// Sends UDP packets as whole Ethernet frames through a packet socket, past the kernel's UDP. The
// kernel is asked once for the way: interface, gateway, MAC address.
#pragma once

#include <cstddef>

#include "atomic/link/known_descriptor.hpp"
#include "atomic/link/socket_address.hpp"

namespace haul::atomics {

// The front of a frame to one peer: Ethernet, IPv4, UDP. known is false until the way is found.
struct FrameFront {
  static constexpr std::size_t bytes = 14 + 20 + 8;  // frame.hpp
  alignas(2) unsigned char front[bytes] = {};
  bool known = false;
};

class RawSender {
 public:
  RawSender() noexcept = default;
  ~RawSender() { close(); }
  RawSender(const RawSender&) = delete;
  RawSender& operator=(const RawSender&) = delete;

  // On one interface; needs CAP_NET_RAW. 0 or -errno.
  int open(const char* interface) noexcept;
  void close() noexcept;
  bool is_open() const noexcept { return fd_.fd().valid(); }

  // Finds the way from `from` (a bound port) to an IPv4 peer. False while the peer's MAC address is
  // not known, and where the way leads through another interface: send by the kernel then, which
  // asks for the address.
  bool find_way(const SocketAddress& from, const SocketAddress& to, FrameFront* front) noexcept;
  // At most 1400 bytes. False: the descriptor is not ours any more; send by the kernel from now on.
  bool send(const FrameFront& front, const void* data, std::size_t bytes) noexcept;

 private:
  KnownDescriptor fd_;
  os::Descriptor ways_;
  unsigned interface_ = 0;
  unsigned char own_mac_[6] = {};
};

}  // namespace haul::atomics
