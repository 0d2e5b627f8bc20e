#include "atomic/client/udp_carrier.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/machine/clock.hpp"
#include "base/os/keep_errno.hpp"

namespace haul::atomics {

namespace {

// A client that hears by completion map also looks at its socket, for packets that the XDP program
// does not see (those that tc has redirected); seldom while it spins.
constexpr std::uint64_t socket_every_ns = 20'000;
constexpr unsigned most_at_once = 128;
constexpr unsigned repeats_that_doubt = 3;

// Takes a slot of the completion map from the session that had it before. False: the program is
// filling one of its entries, and does not finish (its processor sleeps).
bool empty(completion_slot* slot) noexcept {
  constexpr unsigned patience = 100'000;
  // Sequentially consistent: the program claims an entry before it reads the number again.
  __atomic_exchange_n(&slot->session, std::uint64_t{0}, __ATOMIC_SEQ_CST);
  for (completion_entry& entry : slot->entries) {
    const auto is_filled = [&entry] {
      const std::uint64_t state = __atomic_load_n(&entry.state, __ATOMIC_SEQ_CST);
      return static_cast<std::uint32_t>(state) != COMPLETION_FILLING;
    };
    for (unsigned looks = 0; !is_filled(); ++looks) {
      if (looks == patience) return false;
      __builtin_ia32_pause();
    }
    entry.state = 0;
  }
  return true;
}

}  // namespace

UdpConnection::UdpConnection(UdpCarrier& client, const Session::Names& names,
                             const SocketAddress& peer, std::uint64_t timeout_ns,
                             completion_slot* slot) noexcept
    : RemoteConnection(client, names, timeout_ns, Session::Delivery::lossy),
      client_(client),
      peer_(peer),
      slot_(slot) {}

void UdpConnection::send(const WirePacket& packet) noexcept {
  const std::size_t bytes = packet_bytes(packet);
  if (front_.known && client_.raw_.send(front_, &packet, bytes)) return;
  front_.known = false;
  client_.socket_.send(&packet, bytes, peer_);
}

UdpCarrier* UdpCarrier::open(const Options& options, const SocketAddress& at,
                             Error* error) noexcept {
  auto* carrier = new (std::nothrow) UdpCarrier;
  int result = carrier != nullptr && carrier->begin(options) ? 0 : -ENOMEM;
  if (result == 0) result = carrier->socket_.open(at);
  if (result == 0) return carrier;
  delete carrier;
  *error = make_error(Code::io, -result, "cannot open a UDP socket (%s); check the address",
                      describe_errno(-result));
  return nullptr;
}

void UdpCarrier::hear_by(XdpProgram* xdp, const char* interface) noexcept {
  xdp_ = xdp;
  raw_.open(interface);
}

void UdpCarrier::end() noexcept {
  disconnect_all();
  raw_.close();
  socket_.close();
  delete this;
}

Error UdpCarrier::refusal(Code code, const haul_atomic_window_name& name) const noexcept {
  switch (code) {
    case Code::timed_out:
      return make_error(code, 0,
                        "no answer from %s port %u; is the window's owner running there, and does "
                        "a firewall let UDP through?",
                        name.host, name.port);
    case Code::permission:
      return failure_at(name, code,
                        "knows no such window, or not by this key; ask its owner for a new name");
    case Code::again:
      return failure_at(name, code,
                        "serves as many clients as it can; close some, or open its node with more "
                        "sessions");
    case Code::not_supported:
      return failure_at(name, code, "speaks another version; update the older haul");
    case Code::io:
      return make_error(code, 0,
                        "this process has closed the node's socket (closefrom()?), and another one "
                        "has its port; open another node");
    default:
      return make_error(code, 0, "%s port %u refuses the session (%s); connect again", name.host,
                        name.port, describe(code));
  }
}

Expected<RemoteConnection*> UdpCarrier::make(const haul_atomic_window_name& name,
                                             const Session::Names& names) noexcept {
  if (name.kind != 0) {
    return make_error(Code::not_supported, 0,
                      "the window is reached over a fabric (%s) and this node speaks UDP; open a "
                      "node with fabric:PROVIDER",
                      name.host);
  }
  SocketAddress peer;
  if (!parse_host(name.host, name.port, &peer)) {
    return make_error(Code::invalid, 0, "'%s' is not a numeric address; take the name as exported",
                      name.host);
  }
  if (!socket_.reaches(peer)) {
    return make_error(Code::not_supported, 0,
                      "this node's address and %s are not of one family; open a node 'none', "
                      "which speaks IPv4 and IPv6",
                      name.host);
  }
  completion_slot* slot = xdp_ != nullptr && !peer.is_six() ? xdp_->slot(names.cookie) : nullptr;
  if (slot != nullptr && !empty(slot)) slot = nullptr;
  auto* connection =
      new (std::nothrow) UdpConnection(*this, names, peer, options_.timeout_ns, slot);
  if (connection == nullptr) {
    return make_error(Code::no_memory, ENOMEM, "no memory for a connection; free some");
  }
  if (slot != nullptr) {
    slot->asleep = 0;
    __atomic_store_n(&slot->session, names.id, __ATOMIC_RELEASE);
  }
  return connection;
}

void UdpCarrier::is_open(RemoteConnection& connection) noexcept {
  UdpConnection& one = own(connection);
  if (raw_.is_open() && !one.front_.known) {
    raw_.find_way(socket_.local(), one.peer_, &one.front_);
  }
}

void UdpCarrier::parting(RemoteConnection& connection) noexcept {
  completion_slot* slot = own(connection).slot_;
  if (slot != nullptr) slot->session = 0;
}

void UdpCarrier::receive(std::uint64_t now_ns) noexcept {
  for (unsigned i = 0; i < most_at_once; ++i) {
    WirePacket packet;
    const ssize_t bytes = socket_.receive(&packet, sizeof packet, nullptr);
    if (bytes == -EAGAIN || bytes == -EBADF) return;
    // An ICMP error of something sent earlier is a loss.
    if (bytes < 0 || !intact(packet, static_cast<std::size_t>(bytes))) continue;
    const unsigned cookie = packet.header.cookie & 0xffff;
    if (cookie < used_ && connections_[cookie] != nullptr) {
      session_of(*connections_[cookie]).heard(packet, now_ns);
    }
  }
}

void UdpCarrier::pump_one(RemoteConnection& connection, std::uint64_t now_ns) noexcept {
  UdpConnection& one = own(connection);
  Session& session = session_of(one);
  if (one.slot_ != nullptr) session.look(*one.slot_, now_ns);
  session.tick(now_ns);
  // If the frames are not answered, the way may have changed: the kernel's UDP takes over, and the
  // way is looked up again when answers come.
  const std::uint64_t repeated = session.repeated();
  if (!session.anything_unanswered()) {
    if (!one.front_.known && one.repeats_seen_ != repeated) is_open(one);
    one.repeats_seen_ = repeated;
  } else if (repeated - one.repeats_seen_ > repeats_that_doubt) {
    one.front_.known = false;
  }
}

bool UdpCarrier::has_unheard_by_socket() const noexcept {
  return any_waiting([](const RemoteConnection& one) {
    return static_cast<const UdpConnection&>(one).slot_ == nullptr ||
           session_of(one).state() == Session::State::greeting;
  });
}

void UdpCarrier::pump(std::uint64_t now_ns) noexcept {
  if (xdp_ == nullptr || now_ns - socket_looked_ns_ >= socket_every_ns || has_unheard_by_socket()) {
    socket_looked_ns_ = now_ns;
    receive(now_ns);
  }
  // A lost socket is reported at once: nothing can leave or be heard.
  const bool lost = socket_.is_lost();
  for_each_waiting([&](RemoteConnection& one) {
    if (lost) session_of(one).lose(Code::io);
    UdpCarrier::pump_one(one, now_ns);
  });
}

void UdpCarrier::sleep(RemoteConnection& connection) noexcept {
  const KeepErrno keep;
  const UdpConnection& one = own(connection);
  const Session& session = session_of(connection);
  std::uint64_t next = 0;
  bool something = false;
  int fd = -1;
  if (one.slot_ != nullptr) {
    // Sequentially consistent: the program swaps the entry before it reads this word.
    __atomic_fetch_add(&one.slot_->asleep, 1, __ATOMIC_SEQ_CST);
  }
  {
    const Hold hold(*this);
    // One more look after that store, so that no answer is slept through.
    pump(now_ns());
    next = next_ns();
    something = session.awaits_answer();
    fd = socket_.fd();
  }
  if (something) {
    const std::uint64_t now = now_ns();
    pollfd events{fd, POLLIN, 0};
    // Never for long, because another thread may hear what this one waits for.
    constexpr std::uint64_t longest_ns = 10'000'000;
    const std::uint64_t wait_ns = std::min(longest_ns, next > now ? next - now : 0);
    const timespec time{0, static_cast<long>(wait_ns)};
    ppoll(&events, 1, &time, nullptr);
  }
  if (one.slot_ != nullptr) {
    __atomic_fetch_sub(&one.slot_->asleep, 1, __ATOMIC_SEQ_CST);
  }
}

}  // namespace haul::atomics
