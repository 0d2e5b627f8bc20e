#include "atomic/client/client.hpp"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

#include "base/clock.hpp"
#include "base/keep_errno.hpp"
#include "base/os.hpp"
#include "base/sealed.hpp"

namespace haul::atomics {

namespace {

constexpr unsigned socket_every = 64;  // pumps of a client that hears by completion map
constexpr unsigned most_at_once = 128;
constexpr unsigned repeats_that_doubt = 3;

}  // namespace

class Client::Hold {
 public:
  explicit Hold(pthread_mutex_t& mutex) noexcept : mutex_(mutex) { pthread_mutex_lock(&mutex_); }
  ~Hold() { pthread_mutex_unlock(&mutex_); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

void Connection::send(const Packet& packet) noexcept {
  const std::size_t bytes = packet_bytes(packet);
  if (front_.known) {
    client_.raw_.send(front_, &packet, bytes);
  } else {
    client_.socket_.send(&packet, bytes, peer_);
  }
}

int Client::open(const Options& options, const Address& at) noexcept {
  options_ = options;
  connections_.reset(new (std::nothrow) Connection* [options.connections] {});
  return connections_ && presence_.open() ? socket_.open(at) : -ENOMEM;
}

void Client::hear_by(Xdp* xdp, const char* interface) noexcept {
  xdp_ = xdp;
  raw_.open(interface);
}

void Client::close() noexcept {
  for (unsigned i = 0; i < used_; ++i) {
    if (connections_[i] != nullptr) disconnect(connections_[i]);
  }
  raw_.close();
  socket_.close();
}

Error Client::refusal(Code code, const haul_window_name& name) const noexcept {
  switch (code) {
    case Code::timed_out:
      return make_error(code, 0,
                        "no answer from %s port %u; is the window's owner running there, and does "
                        "a firewall let UDP through?",
                        name.host, name.port);
    case Code::permission:
      return make_error(code, 0,
                        "%s port %u knows no such window, or not by this key; ask its owner for a "
                        "new name",
                        name.host, name.port);
    case Code::again:
      return make_error(code, 0,
                        "%s port %u serves as many clients as it can; close some, or open its node "
                        "with more sessions",
                        name.host, name.port);
    case Code::not_supported:
      return make_error(code, 0, "%s port %u speaks another version; update the older haul",
                        name.host, name.port);
    default:
      return make_error(code, 0, "%s port %u refuses the session (%s); connect again", name.host,
                        name.port, describe(code));
  }
}

Expected<Connection*> Client::begin_connect(const haul_window_name& name) noexcept {
  Address peer;
  if (!parse_host(name.host, name.port, &peer)) {
    return make_error(Code::invalid, 0, "'%s' is not a numeric address; take the name as exported",
                      name.host);
  }
  if (peer.is_six() != socket_.local().is_six()) {
    return make_error(Code::not_supported, 0,
                      "this node's address and %s are not of one family; open a node with an %s "
                      "address",
                      name.host, peer.is_six() ? "IPv6" : "IPv4");
  }
  Session::Names names;
  names.window = name.window;
  names.key = name.key;
  while (names.id == 0) {
    if (!os::random_bytes(&names.id, sizeof names.id)) {
      return make_error(Code::io, 0, "the kernel gives no random numbers; is /dev/urandom there?");
    }
  }
  Connection* connection = nullptr;
  {
    const Hold hold(lock_);
    unsigned place = 0;
    while (place < options_.connections && connections_[place] != nullptr) ++place;
    if (place == options_.connections) {
      return make_error(
          Code::no_memory, 0,
          "all %u connections of this node are open; disconnect some, or open it with "
          "more",
          options_.connections);
    }
    names.cookie = place;
    completion_slot* slot = xdp_ != nullptr && !peer.is_six() ? xdp_->slot(place) : nullptr;
    connection = new (std::nothrow) Connection(*this, names, peer, options_.timeout_ns, slot);
    if (connection == nullptr) {
      return make_error(Code::no_memory, ENOMEM, "no memory for a connection; free some");
    }
    if (slot != nullptr) {
      // Of whoever had the place before.
      slot->session = 0;
      for (completion_entry& entry : slot->entries) entry.state = 0;
      slot->asleep = 0;
      __atomic_store_n(&slot->session, names.id, __ATOMIC_RELEASE);
    }
    connections_[place] = connection;
    used_ = std::max(used_, place + 1);
    connection->session_.greet(now_ns());
  }
  return connection;
}

Session::State Client::look(Connection& connection) noexcept {
  const Hold hold(lock_);
  if (connection.session_.state() == Session::State::greeting) pump(now_ns());
  if (connection.session_.state() == Session::State::open) remember_way(connection);
  return connection.session_.state();
}

Expected<Connection*> Client::connect(const haul_window_name& name) noexcept {
  Expected<Connection*> begun = begin_connect(name);
  if (!begun) return begun;
  Connection* connection = *begun;
  for (;;) {
    const Session::State state = look(*connection);
    if (state == Session::State::open) return connection;
    if (state == Session::State::lost) break;
    sleep(*connection);
  }
  const Code reason = connection->session_.reason();
  disconnect(connection);
  return refusal(reason, name);
}

void Client::remember_way(Connection& connection) noexcept {
  if (raw_.is_open() && !connection.front_.known) {
    raw_.find_way(socket_.local(), connection.peer_, &connection.front_);
  }
}

void Client::disconnect(Connection* connection) noexcept {
  {
    const Hold hold(lock_);
    connection->session_.leave();
    if (connection->slot_ != nullptr) connection->slot_->session = 0;
    connections_[connection->cookie_] = nullptr;
    repeated_before_ += connection->session_.repeated();
  }
  delete connection;
}

void Client::receive(std::uint64_t now_ns) noexcept {
  for (unsigned i = 0; i < most_at_once; ++i) {
    Packet packet;
    const ssize_t bytes = socket_.receive(&packet, sizeof packet, nullptr);
    if (bytes == -EAGAIN) return;
    // An ICMP error of something sent earlier is a loss.
    if (bytes < 0 || !intact(packet, static_cast<std::size_t>(bytes))) continue;
    const unsigned cookie = packet.header.cookie & 0xffff;
    if (cookie < used_ && connections_[cookie] != nullptr) {
      connections_[cookie]->session_.heard(packet, now_ns);
    }
  }
}

void Client::pump_one(Connection& connection, std::uint64_t now_ns) noexcept {
  if (connection.slot_ != nullptr) connection.session_.look(*connection.slot_, now_ns);
  connection.session_.tick(now_ns);
  // Nobody hears the frames: the way may have changed, so let the kernel find it anew.
  const std::uint64_t repeated = connection.session_.repeated();
  if (!connection.session_.anything_unanswered()) {
    if (!connection.front_.known && connection.repeats_seen_ != repeated) remember_way(connection);
    connection.repeats_seen_ = repeated;
  } else if (repeated - connection.repeats_seen_ > repeats_that_doubt) {
    connection.front_.known = false;
  }
}

bool Client::has_unheard_by_socket() const noexcept {
  for (unsigned i = 0; i < used_; ++i) {
    const Connection* one = connections_[i];
    if (one == nullptr) continue;
    if (one->session_.state() == Session::State::greeting) return true;
    if (one->slot_ == nullptr && one->session_.anything_unanswered()) return true;
  }
  return false;
}

void Client::pump(std::uint64_t now_ns) noexcept {
  if (xdp_ == nullptr || ++pumps_ % socket_every == 0 || has_unheard_by_socket()) receive(now_ns);
  for (unsigned i = 0; i < used_; ++i) {
    if (connections_[i] != nullptr) pump_one(*connections_[i], now_ns);
  }
}

std::uint64_t Client::next_ns() const noexcept {
  std::uint64_t next = ~std::uint64_t{0};
  for (unsigned i = 0; i < used_; ++i) {
    if (connections_[i] != nullptr) next = std::min(next, connections_[i]->session_.next_ns());
  }
  return next;
}

void Client::sleep(Connection& connection) noexcept {
  const KeepErrno keep;
  std::uint64_t next = 0;
  bool something = false;
  if (connection.slot_ != nullptr) {
    // Sequentially consistent: the program swaps the entry before it reads this word.
    __atomic_fetch_add(&connection.slot_->asleep, 1, __ATOMIC_SEQ_CST);
  }
  {
    const Hold hold(lock_);
    // Looked at once more behind that store, so no answer is slept through.
    pump(now_ns());
    next = next_ns();
    something = connection.session_.state() == Session::State::greeting ||
                connection.session_.anything_unanswered();
  }
  if (something) {
    const std::uint64_t now = now_ns();
    pollfd events{socket_.fd(), POLLIN, 0};
    // Other threads may hear what is ours: never for long.
    constexpr std::uint64_t longest_ns = 10'000'000;
    const std::uint64_t wait_ns = std::min(longest_ns, next > now ? next - now : 0);
    const timespec time{0, static_cast<long>(wait_ns)};
    ppoll(&events, 1, &time, nullptr);
  }
  if (connection.slot_ != nullptr) {
    __atomic_fetch_sub(&connection.slot_->asleep, 1, __ATOMIC_SEQ_CST);
  }
}

Code Client::submit(Connection& connection, const haul_atomic_operation* operations,
                    std::size_t count, std::uint64_t tag, std::uint64_t* ticket) noexcept {
  const Hold hold(lock_);
  const std::uint64_t now = now_ns();
  Code code = connection.session_.submit(operations, count, tag, now, ticket);
  if (code == Code::again) pump_one(connection, now);  // what is not looked at is not repeated
  return code;
}

int Client::test(Connection& connection, std::uint64_t ticket, haul_atomic_operation* operations,
                 std::size_t count, Code* status) noexcept {
  const Hold hold(lock_);
  Session& session = connection.session_;
  if (session.find(ticket) == Session::Found::unanswered) pump(now_ns());
  switch (session.find(ticket)) {
    case Session::Found::unknown: return -1;
    case Session::Found::unanswered: return 0;
    case Session::Found::answered: break;
  }
  *status = session.collect(ticket, operations, count);
  return 1;
}

int Client::wait(Connection& connection, std::uint64_t ticket, haul_atomic_operation* operations,
                 std::size_t count, Code* status) noexcept {
  std::uint64_t since = 0;
  for (;;) {
    const int found = test(connection, ticket, operations, count, status);
    if (found != 0) return found;
    const std::uint64_t now = now_ns();
    if (since == 0) since = now;
    if (now - since < options_.spin_ns) {
      __builtin_ia32_pause();
    } else {
      sleep(connection);
    }
  }
}

std::size_t Client::reap(Connection& connection, haul_atomic_completion* completions,
                         std::size_t capacity) noexcept {
  const Hold hold(lock_);
  pump(now_ns());
  std::size_t count = 0;
  while (count < capacity && connection.session_.collect_any(&completions[count])) ++count;
  return count;
}

std::uint64_t Client::repeated() noexcept {
  const Hold hold(lock_);
  std::uint64_t sum = repeated_before_;
  for (unsigned i = 0; i < used_; ++i) {
    if (connections_[i] != nullptr) sum += connections_[i]->session_.repeated();
  }
  return sum;
}

}  // namespace haul::atomics
