// What clients and monitors say once they have been welcomed.
#include "service/talk/connections.hpp"
#include "service/talk/stats.hpp"

namespace haul::service {
namespace {

// nullptr, or what is wrong.
const char* grant(Client& client, const Packet& packet) {
  wire::Grant message;
  return packet.as(&message) ? client.grants.put(message) : "a grant of a wrong length";
}

const char* withdraw(Hub& hub, Client& client, const Packet& packet) {
  wire::Withdraw message;
  if (!packet.as(&message)) return "a withdrawal of a wrong length";
  // No piece is under way, because this thread moves them all.
  client.grants.withdraw(message.index);
  wire::Withdrawn answer;
  answer.index = message.index;
  hub.tell(client, answer);
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

const char* arena(Hub& hub, Client& client, Packet& packet) {
  wire::ArenaHandover message;
  if (!packet.as(&message)) return "an arena's message of a wrong length";
  // It may have been made while Hello, which named it already, was on its way.
  const bool known = client.arena.open() && client.arena.base() == message.base &&
                     client.arena.bytes() == message.bytes;
  if (!known) {
    Code code = Code::ok;
    const std::string wrong =
        attach_arena(hub, client, packet.take_fd(0), message.base, message.bytes, &code);
    if (!wrong.empty()) {
      client.condemn(code, wrong);
      return nullptr;
    }
  }
  wire::ArenaKnown answer;
  answer.base = message.base;
  answer.bytes = message.bytes;
  hub.tell(client, answer);
  return nullptr;
}

void from_client(Connections& connections, Connection& connection, Packet& packet,
                 bool* wants_work) {
  Hub& hub = connections.hub();
  Client& client = *connection.client;
  *wants_work = true;
  const char* wrong = nullptr;
  switch (packet.kind()) {
    case wire::MessageKind::bell: break;
    case wire::MessageKind::arena: wrong = arena(hub, client, packet); break;
    case wire::MessageKind::grant: wrong = grant(client, packet); break;
    case wire::MessageKind::withdraw: wrong = withdraw(hub, client, packet); break;
    case wire::MessageKind::bind: wrong = bind_space(connections, connection, packet); break;
    case wire::MessageKind::unbind: wrong = unbind_space(connections, connection, packet); break;
    default: wrong = "a message that clients do not send"; break;
  }
  if (wrong != nullptr) client.condemn(Code::invalid, std::string("it sent ") + wrong);
}

// False: it does not read.
bool send_stats(const Hub& hub, int fd) {
  const wire::Stats stats = stats_of(hub);
  bool sent = os::send_packet(fd, &stats, sizeof stats) > 0;
  for (std::size_t i = 0; sent && i < hub.clients.size(); ++i) {
    const wire::ClientStats one = stats_of(*hub.clients[i]);
    sent = os::send_packet(fd, &one, sizeof one) > 0;
  }
  return sent;
}

void from_monitor(Connections& connections, Connection& connection, const Packet& packet) {
  switch (packet.kind()) {
    case wire::MessageKind::query:
      if (!send_stats(connections.hub(), connection.socket.get()))
        connections.refuse(connection, Code::io, "it does not read what it asks for");
      return;
    case wire::MessageKind::stop:
      connections.hub().say("asked to stop");
      connections.want_stop();
      return;
    case wire::MessageKind::bell: return;
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
