// What every part of the service works on: the clients, what is mapped of them, and the figures.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "service/clients/client.hpp"
#include "service/clients/options.hpp"

namespace haul::service {

inline constexpr std::size_t max_clients = 200;

// One thread.
class Hub {
 public:
  explicit Hub(const Options& chosen) : options(chosen), views(chosen.map_budget_bytes) {}
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  Client& add(std::unique_ptr<Client> client);
  // Forgets it: its flights, its mappings, its space. Its socket is the caller's to close,
  // afterwards.
  void remove(Client& client);

  // nullptr: there is none (any more), or it is about to be dropped.
  Client* find(std::uint64_t id);
  Client* find_key(const Key& key);

  // Sends; a client that does not read is condemned.
  template <class Message>
  void tell(Client& client, const Message& message) {
    send(client, &message, sizeof message);
  }
  void say(const std::string& line, LogLevel level = LogLevel::info) const {
    if (options.say) options.say(level, line);
  }

  const Options& options;
  Views views;
  std::vector<std::unique_ptr<Client>> clients;
  Tally gone;                  // of the clients that have left
  std::uint64_t refusals = 0;  // wire::Stats
  bool alarm = false;          // a client is condemned
  bool attend_now = false;     // a flight waits for a message that its client may have sent
  bool held_back = false;      // the latest round met a closed fence
  std::uint64_t started_ns = 0;
  std::uint32_t state = 2;  // wire::Stats
  int cpu = -1;
  std::uint64_t no_client_since_ns = 0;

 private:
  void send(Client& client, const void* message, std::size_t bytes);

  std::unordered_map<std::uint64_t, Client*> by_id_;
};

// "123 (postgres)".
std::string name_of(const Client& client);

}  // namespace haul::service
