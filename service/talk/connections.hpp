// The connections of clients and monitors: accepting, hearing and closing them.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/net/socket.hpp"
#include "base/os/descriptor.hpp"
#include "service/clients/hub.hpp"

namespace haul::service {

enum class Standing : std::uint8_t { newcomer, client, monitor };

struct Connection {
  std::uint64_t id = 0;
  os::Descriptor socket;
  os::SocketPeer peer;
  Standing standing = Standing::newcomer;
  std::uint64_t heard_ns = 0;  // when it last said something, or came
  Client* client = nullptr;
};

// A packet as it came. Its descriptors are closed with it unless they are taken.
class Packet {
 public:
  Packet() = default;
  ~Packet();
  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;

  // As os::receive_packet().
  ssize_t receive(int fd);
  // Descriptor `index`, now the caller's; -1 if there is none.
  int take_fd(unsigned index);
  wire::MessageKind kind() const;
  // The message, if the packet has its length exactly.
  template <class Message>
  bool as(Message* message) const {
    if (bytes_ != sizeof(Message)) return false;
    std::memcpy(message, data_, sizeof(Message));
    return true;
  }
  std::size_t bytes() const { return bytes_; }
  const unsigned char* data() const { return data_; }

 private:
  alignas(8) unsigned char data_[wire::max_message_bytes];
  std::size_t bytes_ = 0;
  int fds_[os::max_packet_fds] = {};
  unsigned fd_count_ = 0;
};

// One thread.
class Connections {
 public:
  // `listener` and `stop_fd` stay the caller's. Throws std::runtime_error.
  Connections(Hub& hub, int listener, int stop_fd);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Waits up to timeout_ms (-1: for ever) for something to come, handles it, and drops clients that
  // are condemned. True if a client may want bytes moved.
  bool attend(int timeout_ms);
  // Drops everybody.
  void close_all();

  bool stop_wanted() const { return stop_wanted_; }
  bool newcomers_wait() const { return newcomers_ != 0; }

  // For the messages' handlers (handshake.cpp, messages.cpp).
  Hub& hub() { return hub_; }
  void want_stop() { stop_wanted_ = true; }
  void greet(Connection& connection, Standing standing);
  // Answers the binding once the grant's owner has been heard: whatever the owner granted before
  // the asker asked is in its socket by now, but perhaps unread.
  void bind_later(Connection& connection, const wire::Bind& message);
  // The asker unbinds the space: an unanswered binding of it is refused.
  void forget_bind(Connection& connection, Space space);
  // Says why, and closes; the connection is gone.
  void refuse(Connection& connection, Code code, const std::string& sentence);

 private:
  bool hear(Connection& connection);
  bool answer_binds();
  void accept_all();
  bool accept_one();
  void make_room();
  bool drop_oldest(Standing standing);
  // Condemns a client that does not belong to this service's user alone any more.
  void look_at_user(Client& client);
  void look_at_users();
  void drop_condemned();
  void drop_late_newcomers();
  void close(Connection& connection);
  void watch(int fd, std::uint64_t id);

  Hub& hub_;
  int listener_, stop_fd_;
  os::Descriptor epoll_;
  os::Descriptor spare_;  // a descriptor to have one when there is none
  bool said_full_ = false;
  bool stop_wanted_ = false;
  std::uint64_t next_id_;
  unsigned newcomers_ = 0;
  std::size_t next_look_ = 0;
  struct LateBind {
    std::uint64_t asker;
    wire::Bind message;
  };
  std::vector<LateBind> binds_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
};

// "", or why a process cannot be served: it acts for another user, or for another user as well.
// Also
// "" where that cannot be told, because the process lives in another pid namespace.
std::string foreign_user(pid_t process);

// The first message of a connection: greets or refuses it (then it is gone).
void hello(Connections& connections, Connection& connection, Packet& packet);
// A later one. The connection may be gone afterwards. *wants_work: see attend().
void message(Connections& connections, Connection& connection, Packet& packet, bool* wants_work);

// Takes an arena over as the client has described it. "" or what is wrong (*code says of which
// kind).
std::string attach_arena(Hub& hub, Client& client, int fd, std::uint64_t base, std::uint64_t bytes,
                         Code* code);

}  // namespace haul::service
