// Clients come and go.
#include "service/clients/hub.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "engine/spaces.hpp"

namespace haul::service {

Hub::~Hub() {
  while (!clients.empty()) remove(*clients.back());
}

Client& Hub::add(std::unique_ptr<Client> client) {
  clients.push_back(std::move(client));
  Client& added = *clients.back();
  by_id_[added.id] = &added;
  added.alarm = &alarm;
  return added;
}

void Hub::remove(Client& client) {
  by_id_.erase(client.id);
  views.detach(client.arena);
  views.bury(client.table, shared_table_bytes);
  if (client.space != self_space) close_space(client.space);
  gone.add(client.tally);
  const auto here = std::find_if(clients.begin(), clients.end(),
                                 [&](const auto& other) { return other.get() == &client; });
  clients.erase(here);
  if (clients.empty()) no_client_since_ns = now_ns();
}

Client* Hub::find(std::uint64_t id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() || found->second->doomed ? nullptr : found->second;
}

Client* Hub::find_key(const Key& key) {
  for (const auto& client : clients) {
    if (!client->doomed && client->key == key) return client.get();
  }
  return nullptr;
}

void Hub::send(Client& client, const void* message, std::size_t bytes) {
  if (client.doomed) return;
  if (os::send_packet(client.socket.get(), message, bytes) < 0)
    client.condemn(Code::io, "it does not read what the service tells it, or is gone");
}

std::string name_of(const Client& client) {
  return text("%d (%s)", static_cast<int>(client.pid), client.name.c_str());
}

std::string text(const char* format, ...) {
  char buffer[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

}  // namespace haul::service
