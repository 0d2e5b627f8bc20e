// What there is to say of the node's service: for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "service/monitor.hpp"

namespace haul::cli {

std::string service_state_name(const wire::Stats& stats);  // "awake", "asleep", ...
std::string show_duration(std::uint64_t ns);               // "12 s", "3 min 5 s", "2 d 4 h"
std::string show_mapped(const wire::Stats& stats);         // "1.2 GiB of 64 GiB"

// A few lines about a running service; a table of its clients; all of it as one document.
void print_service_status(const service::Monitor& monitor, const service::Snapshot& all);
void print_service_clients(const service::Snapshot& all);
nlohmann::ordered_json service_document(const service::Monitor& monitor,
                                        const service::Snapshot& all);

// What `haul info` says: looked up without throwing.
struct ServiceGlance {
  bool running = false;
  std::string status;  // a sentence; if it does not run or answer: why, and the remedy
  std::string socket, version;
  pid_t pid = 0;
  std::uint32_t clients = 0;
};
ServiceGlance glance_at_service();
nlohmann::ordered_json glance_document(const ServiceGlance& glance);

}  // namespace haul::cli
