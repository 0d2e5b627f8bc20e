// What clients and monitors say once they have been welcomed.

#include "base/clock.hpp"
#include "base/os.hpp"

#include "service/connections.hpp"
#include "service/stats.hpp"

namespace haul::service {
namespace {

// nullptr, or what is wrong.
const char* grant(Client& client, const Packet& packet) {
  wire::Grant message;
  return packet.as(&message) ? client.grants.put(message) : "a grant of a wrong length";
}

const char* withdraw(Node& node, Client& client, const Packet& packet) {
  wire::Withdraw message;
  if (!packet.as(&message)) return "a withdrawal of a wrong length";
  // Nobody is amid a piece: this thread moves them all.
  client.grants.withdraw(message.index);
  wire::Withdrawn answer;
  answer.index = message.index;
  node.tell(client, answer);
  return nullptr;
}

const char* bind_space(Connections& connections, Connection& connection, const Packet& packet) {
  wire::Bind message;
  if (!packet.as(&message) || message.space == self_space) return "a binding of a wrong form";
  connections.bind_later(connection, message);
  return nullptr;
}

const char* unbind_space(Connections& connections, Connection& connection, const Packet& packet) {
  wire::Unbind message;
  if (!packet.as(&message) || message.space == self_space) return "an unbinding of a wrong form";
  connections.forget_bind(connection, message.space);
  connection.client->bindings.unbind(message.space);
  return nullptr;
}

const char* arena(Node& node, Client& client, Packet& packet) {
  wire::Arena message;
  if (!packet.as(&message)) return "an arena's message of a wrong length";
  // It may have been made while Hello, which named it already, was on its way.
  const bool known = client.arena.open() && client.arena.base() == message.base &&
                     client.arena.bytes() == message.bytes;
  if (!known) {
    Code code = Code::ok;
    const std::string wrong =
        attach_arena(node, client, packet.take_fd(0), message.base, message.bytes, &code);
    if (!wrong.empty()) {
      client.condemn(code, wrong);
      return nullptr;
    }
  }
  wire::ArenaKnown answer;
  answer.base = message.base;
  answer.bytes = message.bytes;
  node.tell(client, answer);
  return nullptr;
}

void from_client(Connections& connections, Connection& connection, Packet& packet,
                 bool* wants_work) {
  Node& node = connections.node();
  Client& client = *connection.client;
  *wants_work = true;
  const char* wrong = nullptr;
  switch (packet.kind()) {
    case wire::Kind::bell: break;
    case wire::Kind::arena: wrong = arena(node, client, packet); break;
    case wire::Kind::grant: wrong = grant(client, packet); break;
    case wire::Kind::withdraw: wrong = withdraw(node, client, packet); break;
    case wire::Kind::bind: wrong = bind_space(connections, connection, packet); break;
    case wire::Kind::unbind: wrong = unbind_space(connections, connection, packet); break;
    default: wrong = "a message that clients do not send"; break;
  }
  if (wrong != nullptr) client.condemn(Code::invalid, std::string("it sent ") + wrong);
}

// False: it does not read.
bool send_stats(const Node& node, int fd) {
  const wire::Stats stats = stats_of(node);
  bool sent = os::send_packet(fd, &stats, sizeof stats) > 0;
  for (std::size_t i = 0; sent && i < node.clients.size(); ++i) {
    const wire::ClientStats one = stats_of(node, *node.clients[i]);
    sent = os::send_packet(fd, &one, sizeof one) > 0;
  }
  return sent;
}

void from_monitor(Connections& connections, Connection& connection, const Packet& packet) {
  switch (packet.kind()) {
    case wire::Kind::query:
      if (!send_stats(connections.node(), connection.socket.get()))
        connections.refuse(connection, Code::io, "it does not read what it asks for");
      return;
    case wire::Kind::stop:
      connections.node().say("asked to stop");
      connections.want_stop();
      return;
    case wire::Kind::bell: return;
    default: connections.refuse(connection, Code::invalid, "a message that monitors do not send");
  }
}

}  // namespace

void message(Connections& connections, Connection& connection, Packet& packet, bool* wants_work) {
  if (connection.standing == Standing::client) {
    from_client(connections, connection, packet, wants_work);
  } else {
    from_monitor(connections, connection, packet);
  }
}

}  // namespace haul::service
