// What the command says about the node's service, to people and to programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "service/monitor.hpp"

namespace haul::cli {

std::string service_state_name(const wire::Stats& stats);  // "awake", "asleep", ...
std::string show_duration(std::uint64_t ns);               // "12 s", "3 min 5 s", "2 d 4 h"
std::string show_mapped(const wire::Stats& stats);         // "1.2 GiB of 64 GiB"

// A few lines about a running service, a table of its clients, and all of that as one document.
void print_service_status(const service::Monitor& monitor, const service::Snapshot& all);
void print_service_clients(const service::Snapshot& all);
nlohmann::ordered_json service_document(const service::Monitor& monitor,
                                        const service::Snapshot& all);

// What `haul info` says. Looking it up throws nothing.
struct ServiceGlance {
  bool running = false;
  std::string status;  // one sentence; if the service does not run or answer, why, and the remedy
  std::string socket, version;
  pid_t pid = 0;
  std::uint32_t clients = 0;
};
ServiceGlance glance_at_service();
nlohmann::ordered_json glance_document(const ServiceGlance& glance);

}  // namespace haul::cli
