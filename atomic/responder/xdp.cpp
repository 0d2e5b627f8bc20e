#include "atomic/responder/xdp.hpp"

#include <net/if.h>

#include <cerrno>
#include <new>

#include "atomic/wire/wire_packet.hpp"
#include "base/os/keep_errno.hpp"

namespace haul::atomics {

XdpResponder* XdpResponder::open(const Options& options, Error* error) noexcept {
  const KeepErrno keep;
  auto* responder = new (std::nothrow) XdpResponder;
  if (responder == nullptr) {
    *error = make_error(Code::no_memory, ENOMEM, "no memory for a responder; free some");
    return nullptr;
  }
  if (responder->start(options, error)) return responder;
  responder->close();
  return nullptr;
}

bool XdpResponder::start(const Options& options, Error* error) noexcept {
  if (options.at.is_six()) {
    *error = make_error(Code::not_supported, 0,
                        "the interface '%s' has no IPv4 address, which XDP needs; give it one",
                        options.interface);
    return false;
  }
  XdpOptions xdp;
  xdp.interface = if_nametoindex(options.interface);
  xdp.mode = options.mode;
  xdp.address = options.at.four.sin_addr.s_addr;
  xdp.client_port = options.client_port;
  xdp.connections = options.connections;
  serves_ = options.serves;
  if (serves_) {
    const int result = passed_[0].open(options.at);
    if (result != 0) {
      *error = make_error(result == -EADDRINUSE ? Code::again : Code::io, -result,
                          "UDP port %u cannot be opened (%s); choose another", options.at.port(),
                          describe_errno(-result));
      return false;
    }
    xdp.port = passed_[0].local().four.sin_port;
    // A kernel without IPv6 passes none of its packets.
    passed_[1].open_six(options.interface, passed_[0].local().port());
    xdp.sessions = options.sessions;
  }
  program_ = open_xdp(xdp, error);
  return program_ != nullptr;
}

void XdpResponder::close() noexcept {
  if (program_ != nullptr) program_->close();
  for (UdpSocket& socket : passed_) socket.close();
  delete this;
}

std::uint16_t XdpResponder::port() const noexcept {
  return passed_[0].is_open() ? passed_[0].local().port() : 0;
}

const char* XdpResponder::how() const noexcept {
  if (serves_) return program_->is_native() ? "xdp, native," : "xdp, generic (skb),";
  return program_->is_native() ? "none; replies by xdp, native,"
                               : "none; replies by xdp, generic (skb),";
}

int XdpResponder::make_memory(std::size_t bytes, Error* error) noexcept {
  return program_->make_memory(pages_of(bytes), error);
}

bool XdpResponder::add_window(const WindowMemory& memory, haul_atomic_window_name* name,
                              Error* error) noexcept {
  return program_->add_window(name->window, entry_of(*name), memory.fd, error);
}

void XdpResponder::remove_window(unsigned index) noexcept {
  program_->remove_window(index);
}

void XdpResponder::serve_socket(unsigned which) noexcept {
  constexpr unsigned most_at_once = 64;
  UdpSocket& socket = passed_[which];
  for (unsigned i = 0; i < most_at_once; ++i) {
    WirePacket packet;
    SocketAddress from;
    const ssize_t bytes = socket.receive(&packet, sizeof packet, &from);
    if (bytes == -EAGAIN || bytes == -EBADF) return;
    if (bytes < 0) continue;
    // An IPv6 client is known by a number that stands for its address.
    const std::uint64_t source = from.number();
    const auto address = static_cast<std::uint32_t>(source >> 16);
    const std::uint16_t port = from.is_six() ? from.six.sin6_port : from.four.sin_port;
    const std::size_t answer =
        program_->serve(&packet, static_cast<std::size_t>(bytes), address, port);
    if (answer != 0) socket.send(&packet, answer, from);
  }
}

}  // namespace haul::atomics
