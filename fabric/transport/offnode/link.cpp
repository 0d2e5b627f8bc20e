// Messages on a link.
#include "fabric/transport/offnode/link.hpp"

#include <cerrno>

namespace haul::fabric {

namespace {

// A node that has vanished, or a cut cable, is an error after half a minute: shorter outages are
// TCP's to bridge.
constexpr int link_idle_s = 10, link_interval_s = 5, link_probes = 4;

}  // namespace

OffnodeLink::OffnodeLink(int fd) noexcept : fd_(os::Descriptor::of(fd)) {
  os::watch_connection(fd, link_idle_s, link_interval_s, link_probes);
}

OffnodeLink::~OffnodeLink() {
  fd_.close();
}

void OffnodeLink::say(const LinkMessage& message) noexcept {
  if (!fd_.valid()) return;
  if (os::send_stream(fd_.get(), &message, sizeof message) ==
      static_cast<ssize_t>(sizeof message)) {
    return;
  }
  fd_.close();
}

OffnodeLink::Heard OffnodeLink::hear(LinkMessage* message) noexcept {
  if (!fd_.valid()) return Heard::closed;
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&incoming_);
  const ssize_t received = os::receive_stream(fd_.get(), bytes + got_, sizeof incoming_ - got_);
  if (received == -EAGAIN) return Heard::nothing;
  if (received <= 0) return Heard::closed;
  got_ += static_cast<std::size_t>(received);
  if (got_ < sizeof incoming_) return Heard::nothing;
  got_ = 0;
  if (!incoming_.valid()) return Heard::closed;
  *message = incoming_;
  return Heard::message;
}

bool OffnodeLink::own_address(os::InetAddress* address) const noexcept {
  return os::own_address(fd_.get(), address);
}

}  // namespace haul::fabric
