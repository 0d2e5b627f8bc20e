// epoll, accepting, receiving, closing.
#include "service/talk/connections.hpp"

#include <fcntl.h>
#include <haul/haul.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/os/rights.hpp"

namespace haul::service {
namespace {

constexpr std::uint64_t listener_id = 0, stop_id = 1, first_id = 2;
constexpr std::uint64_t hello_patience_ns = 5'000'000'000;
constexpr std::uint64_t user_every_ns = 1'000'000'000;
constexpr unsigned max_newcomers = 64, max_monitors = 32;
// Bounds on what one look at the sockets takes.
constexpr int events_at_once = 64;
constexpr unsigned accepts_at_once = 16, packets_at_once = 16, packets_drained = 64;
constexpr unsigned hearings_before_bind = 64;

os::Descriptor open_spare() {
  return os::Descriptor::of(os::above_streams(open("/dev/null", O_RDONLY | O_CLOEXEC)));
}

}  // namespace

std::string foreign_user(pid_t process) {
  std::uint32_t users[4] = {};
  const std::uint32_t own = os::user_id();
  if (process <= 0 || !os::users_of(process, users)) return "";
  for (const std::uint32_t user : users) {
    if (user != own)
      return text("it acts for user %u, and this service is user %u's; it goes on without", user,
                  own);
  }
  return "";
}

Packet::~Packet() {
  for (unsigned i = 0; i < fd_count_; ++i) os::close_fd(fds_[i]);
}

ssize_t Packet::receive(int fd) {
  const ssize_t bytes = os::receive_packet(fd, data_, sizeof data_, fds_, &fd_count_);
  bytes_ = bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  return bytes;
}

int Packet::take_fd(unsigned index) {
  if (index >= fd_count_) return -1;
  const int fd = fds_[index];
  fds_[index] = -1;
  return fd;
}

wire::MessageKind Packet::kind() const {
  std::uint32_t kind = 0;
  if (bytes_ >= sizeof kind) std::memcpy(&kind, data_, sizeof kind);
  return static_cast<wire::MessageKind>(kind);
}

Connections::Connections(Hub& hub, int listener, int stop_fd)
    : hub_(hub), listener_(listener), stop_fd_(stop_fd), next_id_(first_id) {
  epoll_ = os::Descriptor::of(os::above_streams(epoll_create1(EPOLL_CLOEXEC)));
  spare_ = open_spare();
  if (!epoll_.valid() || !spare_.valid()) {
    const int error = errno;
    epoll_.close();
    spare_.close();
    throw std::runtime_error(
        text("the service gets no descriptors (%s); raise ulimit -n", std::strerror(error)));
  }
  watch(listener_, listener_id);
  watch(stop_fd_, stop_id);
}

Connections::~Connections() {
  close_all();
  epoll_.close();
  spare_.close();
}

void Connections::watch(int fd, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

bool Connections::attend(int timeout_ms) {
  epoll_event events[events_at_once];
  hub_.attend_now = false;
  const int count =
      epoll_wait(epoll_.get(), events, events_at_once, binds_.empty() ? timeout_ms : 0);
  bool wants_work = false;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t id = events[i].data.u64;
    if (id == listener_id) {
      accept_all();
    } else if (id == stop_id) {
      stop_wanted_ = true;
    } else if (const auto found = connections_.find(id); found != connections_.end()) {
      wants_work |= hear(*found->second);
    }
  }
  look_at_users();
  wants_work |= answer_binds();
  drop_condemned();
  if (newcomers_ != 0) drop_late_newcomers();
  return wants_work;
}

bool Connections::hear(Connection& connection) {
  bool wants_work = false;
  const std::uint64_t id = connection.id;
  for (unsigned i = 0; i < packets_at_once; ++i) {
    Packet packet;
    const ssize_t bytes = packet.receive(connection.socket.get());
    if (bytes == -EAGAIN) break;
    if (bytes == -EMSGSIZE) {
      refuse(connection, Code::invalid, "a message longer than there are");
      return wants_work;
    }
    if (bytes <= 0) {
      if (connection.client != nullptr)
        hub_.say(text("client %s left", name_of(*connection.client).c_str()));
      close(connection);
      return wants_work;
    }
    connection.heard_ns = now_ns();
    if (connection.standing == Standing::newcomer) {
      hello(*this, connection, packet);
    } else {
      message(*this, connection, packet, &wants_work);
    }
    if (connections_.find(id) == connections_.end()) return wants_work;
    // A client that has just come may have requests in its rings. (A monitor wakes nobody.)
    wants_work |= connection.client != nullptr;
    if (connection.client != nullptr && connection.client->doomed) break;
  }
  return wants_work;
}

void Connections::bind_later(Connection& connection, const wire::Bind& message) {
  binds_.push_back(LateBind{connection.id, message});
}

void Connections::forget_bind(Connection& connection, Space space) {
  std::erase_if(binds_, [&](const LateBind& late) {
    if (late.asker != connection.id || late.message.space != space) return false;
    wire::Bound bound;
    bound.space = space;
    bound.code = static_cast<std::int32_t>(Code::permission);
    hub_.tell(*connection.client, bound);
    return true;
  });
}

bool Connections::answer_binds() {
  bool wants_work = false;
  // Those that come meanwhile have their turn next time.
  std::vector<LateBind> binds;
  binds.swap(binds_);
  for (const LateBind& late : binds) {
    Key key;
    std::copy(std::begin(late.message.key), std::end(late.message.key), key.begin());
    // Reads all that the owner's socket holds, which has room for fewer packets than this.
    for (unsigned i = 0; i < hearings_before_bind; ++i) {
      const Client* owner = hub_.find_key(key);
      if (owner == nullptr) break;
      const auto found = connections_.find(owner->id);
      if (found == connections_.end() || os::wait_readable(found->second->socket.get(), 0) <= 0)
        break;
      wants_work |= hear(*found->second);
    }
    const auto asker = connections_.find(late.asker);
    if (asker == connections_.end()) continue;
    look_at_user(*asker->second->client);
    if (asker->second->client->doomed) continue;
    hub_.tell(*asker->second->client, bind(hub_, *asker->second->client, late.message));
  }
  return wants_work;
}

void Connections::look_at_user(Client& client) {
  client.user_seen_ns = now_ns();
  if (std::string foreign = foreign_user(client.pid); !foreign.empty())
    client.condemn(Code::permission, std::move(foreign));
}

// One at a time, for each look takes some 20 us; each client once a second.
void Connections::look_at_users() {
  if (hub_.clients.empty()) return;
  Client& client = *hub_.clients[next_look_++ % hub_.clients.size()];
  if (now_ns() - client.user_seen_ns >= user_every_ns) look_at_user(client);
}

void Connections::accept_all() {
  for (unsigned i = 0; i < accepts_at_once; ++i) {
    if (!accept_one()) return;
  }
}

bool Connections::accept_one() {
  const int fd = os::accept_from(listener_);
  if (fd == -EMFILE || fd == -ENFILE) {
    if (!said_full_)
      hub_.say("no descriptor is left for a further client; raise ulimit -n", LogLevel::warning);
    said_full_ = true;
    if (drop_oldest(Standing::monitor)) return true;
    // With the spare descriptor given up, the caller can be accepted and sent away; otherwise it
    // would wait for ever.
    spare_.close();
    const int last = os::accept_from(listener_);
    os::close_fd(last);
    spare_ = open_spare();
    return last >= 0;
  }
  if (fd < 0) return fd == -ECONNABORTED || fd == -EINTR;
  make_room();
  auto made = std::make_unique<Connection>();
  Connection& connection = *made;
  connection.id = next_id_++;
  connection.socket = os::Descriptor::of(fd);
  connection.heard_ns = now_ns();
  const bool known = os::peer_of(fd, &connection.peer);
  connections_.emplace(connection.id, std::move(made));
  ++newcomers_;
  if (!known || connection.peer.uid != os::user_id()) {
    refuse(connection, Code::permission,
           text("this service is user %u's and serves no other; you are user %u: run `haul serve` "
                "as that user, or go on without",
                os::user_id(), connection.peer.uid));
    return true;
  }
  watch(fd, connection.id);
  return true;
}

void Connections::make_room() {
  unsigned monitors = 0;
  for (const auto& [id, connection] : connections_)
    monitors += connection->standing == Standing::monitor;
  if (newcomers_ >= max_newcomers) drop_oldest(Standing::newcomer);
  if (monitors >= max_monitors) drop_oldest(Standing::monitor);
}

bool Connections::drop_oldest(Standing standing) {
  Connection* oldest = nullptr;
  for (const auto& [id, connection] : connections_) {
    if (connection->standing == standing &&
        (oldest == nullptr || connection->heard_ns < oldest->heard_ns))
      oldest = connection.get();
  }
  if (oldest == nullptr) return false;
  close(*oldest);
  return true;
}

void Connections::drop_condemned() {
  if (!hub_.alarm) return;
  hub_.alarm = false;
  for (;;) {
    Connection* condemned = nullptr;
    for (const auto& [id, connection] : connections_) {
      if (connection->client != nullptr && connection->client->doomed) condemned = connection.get();
    }
    if (condemned == nullptr) return;
    const Client& client = *condemned->client;
    const std::string why = client.doom;
    hub_.say(text("client %s was dropped: %s", name_of(client).c_str(), why.c_str()),
             LogLevel::warning);
    refuse(*condemned, client.doom_code, why);
  }
}

void Connections::drop_late_newcomers() {
  const std::uint64_t now = now_ns();
  for (;;) {
    Connection* late = nullptr;
    for (const auto& [id, connection] : connections_) {
      if (connection->standing == Standing::newcomer &&
          now - connection->heard_ns > hello_patience_ns)
        late = connection.get();
    }
    if (late == nullptr) return;
    refuse(*late, Code::timed_out, "nothing was said for 5 s; a program of haul begins with Hello");
  }
}

void Connections::greet(Connection& connection, Standing standing) {
  connection.standing = standing;
  --newcomers_;
}

void Connections::refuse(Connection& connection, Code code, const std::string& sentence) {
  ++hub_.refusals;
  wire::Refused refused;
  refused.code = static_cast<std::int32_t>(code);
  std::strncpy(refused.version, haul_version(), sizeof refused.version - 1);
  std::strncpy(refused.sentence, sentence.c_str(), sizeof refused.sentence - 1);
  os::send_packet(connection.socket.get(), &refused, sizeof refused);
  close(connection);
}

void Connections::close(Connection& connection) {
  if (connection.standing == Standing::newcomer) --newcomers_;
  // Its flights and mappings first: once a process reads "closed", nothing of its memory is touched
  // any more.
  if (connection.client != nullptr) hub_.remove(*connection.client);
  // Unread messages would make the process's last reads fail with ECONNRESET.
  for (unsigned i = 0; i < packets_drained; ++i) {
    Packet unheard;
    if (unheard.receive(connection.socket.get()) <= 0) break;
  }
  connection.socket.close();
  connections_.erase(connection.id);
}

void Connections::close_all() {
  while (!connections_.empty()) close(*connections_.begin()->second);
}

}  // namespace haul::service
