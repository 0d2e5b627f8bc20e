// Packets over TCP.
#include "fabric/transport/offnode/carrier/socket_carrier.hpp"

#include <rdma/fi_errno.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace haul::fabric {

namespace {

using Length = std::uint32_t;
constexpr std::size_t landing_bytes = std::size_t{256} << 10;
// Landings beside one for each connection, held by packets that nobody has taken yet. When all are
// in use, nothing more is read.
constexpr std::size_t spare_landings = 256;
// Data may be under way for this long; the link notices whether the peer lives.
constexpr int idle_s = 60, interval_s = 10, probes = 6;
constexpr int events_at_once = 16;

}  // namespace

Expected<std::unique_ptr<OffnodeCarrier>> SocketCarrier::open(
    const os::InetAddress& local) noexcept {
  std::unique_ptr<SocketCarrier> carrier(new (std::nothrow) SocketCarrier);
  const int error = carrier ? carrier->set_up(local) : -ENOMEM;
  if (error == 0) return std::unique_ptr<OffnodeCarrier>(std::move(carrier));
  return make_error(Code::io, -error,
                    "other nodes cannot be talked to over TCP (%s); raise the limit of open files "
                    "(ulimit -n)",
                    describe_errno(-error));
}

int SocketCarrier::set_up(const os::InetAddress& local) noexcept {
  provider_ = socket_name;
  Name name;
  name.address = local;
  const int listener = os::listen_inet(&name.port);
  if (listener < 0) return listener;
  listener_ = os::Descriptor::of(listener);
  if (!watch()) return -EMFILE;
  static_assert(sizeof name <= name_capacity);
  std::memcpy(name_, &name, sizeof name);
  name_bytes_ = sizeof name;
  return 0;
}

SocketCarrier::~SocketCarrier() {
  for (const auto& incoming : incoming_) incoming->fd.close();
  for (const auto& outgoing : outgoing_) outgoing->fd.close();
  epoll_.close();
  listener_.close();
}

// Makes the epoll, and another one where the program has closed it.
bool SocketCarrier::watch() noexcept {
  if (epoll_.intact()) return true;
  epoll_.close();
  if (os::Epoll::open(&epoll_) != 0) return false;
  epoll_.add(listener_.get(), listener_name);
  for (const auto& incoming : incoming_) epoll_.add(incoming->fd.get(), incoming->name);
  return true;
}

// ---- out ----

int SocketCarrier::insert(const std::uint8_t* name, std::size_t bytes,
                          fi_addr_t* address) noexcept {
  if (bytes != sizeof(Name)) return -FI_EINVAL;
  Name place;
  std::memcpy(&place, name, sizeof place);
  auto outgoing = std::make_unique<Outgoing>();
  const int fd = os::connect_inet(place.address, place.port);
  if (fd < 0) return fd;
  outgoing->fd = os::Descriptor::of(fd);
  os::watch_connection(fd, idle_s, interval_s, probes);
  *address = outgoing_.size();
  outgoing_.push_back(std::move(outgoing));
  return 0;
}

void SocketCarrier::finish(Departure& departure, int error) noexcept {
  departure.next = nullptr;
  // Its bytes have left, so their place can tell poll() how it went.
  std::memcpy(departure.data - sizeof error, &error, sizeof error);
  *last_gone_ = &departure;
  last_gone_ = &departure.next;
}

// Sends more of the current packet; false while some of it is left.
bool SocketCarrier::push(Outgoing& outgoing) noexcept {
  Departure& departure = *outgoing.current;
  const std::size_t bytes = sizeof(Length) + departure.bytes;
  const ssize_t sent = os::send_stream(
      outgoing.fd.get(), departure.data - sizeof(Length) + outgoing.sent, bytes - outgoing.sent);
  if (sent == -EAGAIN) return false;
  if (sent < 0) {
    outgoing.error = -FI_ECONNRESET;
  } else {
    outgoing.sent += static_cast<std::size_t>(sent);
    if (outgoing.sent < bytes) return false;
  }
  outgoing.current = nullptr;
  finish(departure, -outgoing.error);
  return true;
}

int SocketCarrier::send(Departure& departure, fi_addr_t address) noexcept {
  Outgoing& outgoing = *outgoing_[address];
  if (outgoing.error != 0) return outgoing.error;
  if (outgoing.current != nullptr) return -FI_EAGAIN;
  if (!outgoing.connected) {
    const int result = os::connect_result(outgoing.fd.get());
    if (result == -EINPROGRESS) return -FI_EAGAIN;
    if (result != 0) return outgoing.error = result;
    outgoing.connected = true;
  }
  const auto length = static_cast<Length>(departure.bytes);
  std::memcpy(departure.data - sizeof length, &length, sizeof length);
  outgoing.current = &departure;
  outgoing.sent = 0;
  if (!push(outgoing)) stuck_.push_back(&outgoing);
  return 0;
}

// ---- in ----

bool SocketCarrier::accept() noexcept {
  for (bool any = false;; any = true) {
    const int fd = os::accept_inet(listener_.get());
    if (fd < 0) return any;
    os::watch_connection(fd, idle_s, interval_s, probes);
    incoming_.push_back(std::make_unique<Incoming>());
    Incoming& incoming = *incoming_.back();
    incoming.fd = os::Descriptor::of(fd);
    incoming.name = next_name_++;
    if (epoll_.add(fd, incoming.name) != 0) end(incoming);
  }
}

void SocketCarrier::end(Incoming& incoming) noexcept {
  incoming.fd.close();
  if (incoming.landing != nullptr) {
    incoming.landing->full = true;
    if (incoming.landing->packets == 0) free_landings_.push_back(incoming.landing);
  }
  std::erase_if(incoming_, [&](const auto& other) { return other.get() == &incoming; });
}

Landing* SocketCarrier::take_landing() noexcept {
  if (free_landings_.empty()) {
    Slab slab;
    if (landings_.size() >= spare_landings + incoming_.size() || !map(landing_bytes, &slab))
      return nullptr;
    landings_.push_back(std::make_unique<Landing>());
    landings_.back()->kind = CarrierOperation::Kind::landing;
    landings_.back()->data = slab.memory;
    free_landings_.push_back(landings_.back().get());
    slabs_.push_back(std::move(slab));
  }
  Landing* landing = free_landings_.back();
  free_landings_.pop_back();
  landing->full = false;
  return landing;
}

void SocketCarrier::let_go(Landing& landing) noexcept {
  if (--landing.packets == 0 && landing.full) free_landings_.push_back(&landing);
}

// Makes sure that a whole packet fits behind what has been parsed. False without memory.
bool SocketCarrier::make_room(Incoming& incoming) noexcept {
  Landing* const old = incoming.landing;
  if (old != nullptr && old->packets == 0 && incoming.parsed == incoming.filled) {
    incoming.parsed = incoming.filled = 0;
  }
  const std::size_t needed = sizeof(Length) + packet_bytes;
  if (old != nullptr && incoming.parsed + needed <= landing_bytes) return true;
  Landing* const landing = take_landing();
  if (landing == nullptr) return false;
  if (old != nullptr) {
    std::memcpy(landing->data, old->data + incoming.parsed, incoming.filled - incoming.parsed);
    old->full = true;
    if (old->packets == 0) free_landings_.push_back(old);
  }
  incoming.filled -= incoming.parsed;
  incoming.parsed = 0;
  incoming.landing = landing;
  return true;
}

// False for what is no packet.
bool SocketCarrier::parse(Incoming& incoming, User& user) noexcept {
  for (;;) {
    const std::size_t there = incoming.filled - incoming.parsed;
    Length length;
    if (there < sizeof length) return true;
    std::memcpy(&length, incoming.landing->data + incoming.parsed, sizeof length);
    if (length > packet_bytes) return false;
    if (there < sizeof length + length) return true;
    const std::byte* packet = incoming.landing->data + incoming.parsed + sizeof length;
    incoming.parsed += sizeof length + length;
    ++incoming.landing->packets;
    user.arrived(*this, packet, length, *incoming.landing);
  }
}

bool SocketCarrier::receive(Incoming& incoming, User& user) noexcept {
  if (!make_room(incoming)) return false;
  const ssize_t received = os::receive_stream(
      incoming.fd.get(), incoming.landing->data + incoming.filled, landing_bytes - incoming.filled);
  if (received == -EAGAIN) return false;
  if (received > 0) incoming.filled += static_cast<std::size_t>(received);
  if (received <= 0 || !parse(incoming, user)) end(incoming);
  return true;
}

bool SocketCarrier::poll(User& user) noexcept {
  std::erase_if(stuck_, [this](Outgoing* outgoing) { return push(*outgoing); });
  bool active = gone_ != nullptr;
  while (Departure* departure = gone_) {
    gone_ = departure->next;
    if (gone_ == nullptr) last_gone_ = &gone_;
    int error;
    std::memcpy(&error, departure->data - sizeof error, sizeof error);
    user.departed(*departure, error);
  }
  epoll_event events[events_at_once];
  const int count = epoll_.wait(events, events_at_once, 0);
  if (count == -EBADF) watch();
  for (int i = 0; i < count; ++i) {
    const std::uint64_t name = events[i].data.u64;
    if (name == listener_name) active |= accept();
    const auto found = std::find_if(incoming_.begin(), incoming_.end(),
                                    [&](const auto& one) { return one->name == name; });
    if (found != incoming_.end()) active |= receive(**found, user);
  }
  return active;
}

}  // namespace haul::fabric
