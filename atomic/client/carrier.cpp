#include "atomic/client/carrier.hpp"

#include <algorithm>
#include <new>

#include "base/machine/clock.hpp"
#include "base/os/pages/sealed.hpp"

namespace haul::atomics {

Error failure_at(const haul_atomic_window_name& name, Code code, const char* rest) noexcept {
  return make_error(code, 0, "%s port %u %s", name.host, name.port, rest);
}

bool Carrier::begin(const Options& options) noexcept {
  options_ = options;
  connections_.reset(new (std::nothrow) RemoteConnection* [options.connections] {});
  waiting_.reset(new (std::nothrow) RemoteConnection*[options.connections]);
  return connections_ && waiting_ && presence_.open();
}

void Carrier::begin_waiting(RemoteConnection& connection) noexcept {
  if (connection.waits_) return;
  connection.waits_ = true;
  waiting_[waiting_count_++] = &connection;
}

void Carrier::disconnect_all() noexcept {
  for (unsigned i = 0; i < used_; ++i) {
    if (connections_[i] != nullptr) disconnect(connections_[i]);
  }
}

Expected<RemoteConnection*> Carrier::begin_connect(const haul_atomic_window_name& name) noexcept {
  Session::Names names;
  names.window = name.window;
  names.key = name.key;
  while (names.id == 0) {
    if (!os::random_bytes(&names.id, sizeof names.id)) {
      return make_error(Code::io, 0, "the kernel gives no random numbers; is /dev/urandom there?");
    }
  }
  const Hold hold(*this);
  unsigned place = 0;
  while (place < options_.connections && connections_[place] != nullptr) ++place;
  if (place == options_.connections) {
    return make_error(Code::no_memory, 0,
                      "all %u connections of this node are open; disconnect some, or open it with "
                      "more",
                      options_.connections);
  }
  names.cookie = place;
  Expected<RemoteConnection*> made = make(name, names);
  if (!made) return made;
  connections_[place] = *made;
  used_ = std::max(used_, place + 1);
  session_of(**made).greet(now_ns());
  begin_waiting(**made);
  return made;
}

Session::State Carrier::look(RemoteConnection& connection) noexcept {
  const Hold hold(*this);
  Session& session = connection.session_;
  if (session.state() == Session::State::greeting) pump(now_ns());
  if (session.state() == Session::State::open) is_open(connection);
  return session.state();
}

Code Carrier::reason(RemoteConnection& connection) noexcept {
  const Hold hold(*this);
  return connection.session_.reason();
}

Expected<RemoteConnection*> Carrier::connect(const haul_atomic_window_name& name) noexcept {
  Expected<RemoteConnection*> begun = begin_connect(name);
  if (!begun) return begun;
  RemoteConnection* connection = *begun;
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

void Carrier::disconnect(RemoteConnection* connection) noexcept {
  {
    const Hold hold(*this);
    connection->session_.leave();
    parting(*connection);
    connections_[connection->place_] = nullptr;
    // Its session awaits nothing any more, so this only takes it off the list.
    for_each_waiting([](const RemoteConnection&) {});
    repeated_before_ += connection->session_.repeated();
  }
  delete connection;
}

std::uint64_t Carrier::next_ns() const noexcept {
  std::uint64_t next = ~std::uint64_t{0};
  for (unsigned i = 0; i < waiting_count_; ++i) {
    next = std::min(next, waiting_[i]->session_.next_ns());
  }
  return next;
}

Code Carrier::submit(RemoteConnection& connection, const haul_atomic_operation* operations,
                     std::size_t count, std::uint64_t tag, std::uint64_t* ticket) noexcept {
  const Hold hold(*this);
  const std::uint64_t now = now_ns();
  Code code = connection.session_.submit(operations, count, tag, now, ticket);
  if (code == Code::ok) begin_waiting(connection);
  if (code == Code::again) pump_one(connection, now);  // a packet is repeated only by a look
  return code;
}

int Carrier::test(RemoteConnection& connection, std::uint64_t ticket,
                  haul_atomic_operation* operations, std::size_t count, Code* status) noexcept {
  const Hold hold(*this);
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

int Carrier::wait(RemoteConnection& connection, std::uint64_t ticket,
                  haul_atomic_operation* operations, std::size_t count, Code* status) noexcept {
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

std::size_t Carrier::reap(RemoteConnection& connection, haul_atomic_completion* completions,
                          std::size_t capacity) noexcept {
  const Hold hold(*this);
  pump(now_ns());
  std::size_t count = 0;
  while (count < capacity && connection.session_.collect_any(&completions[count])) ++count;
  return count;
}

std::uint64_t Carrier::repeated() noexcept {
  const Hold hold(*this);
  std::uint64_t sum = repeated_before_;
  for (unsigned i = 0; i < used_; ++i) {
    if (connections_[i] != nullptr) sum += connections_[i]->session_.repeated();
  }
  return sum;
}

}  // namespace haul::atomics
