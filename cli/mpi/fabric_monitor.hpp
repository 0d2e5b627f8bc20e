// The endpoints of running processes, and what they say of themselves (fabric/transport/monitor).
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fabric/transport/monitor.hpp"

namespace haul::cli {

// One look at one endpoint.
struct EndpointLook {
  std::string name;  // of its socket
  pid_t pid = 0;     // as seen from here; 0 if it has none in this pid namespace
  fabric::MonitorReply reply;
};

// Asks every endpoint of this user in this network namespace. One that does not answer within a
// second (a stopped process) or speaks another version is left out and named in `silent`, where it
// is wanted.
std::vector<EndpointLook> look_at_endpoints(std::vector<std::string>* silent = nullptr);

// Those of one process. Throws tools::CommandFailure if it has none or does not answer.
std::vector<EndpointLook> look_at_process(pid_t pid);

// What can be used of a packet that claims to be a MonitorReply: false if it is of another version.
// Texts are ended and made printable, counts are within bounds.
bool check_reply(const void* packet, std::size_t bytes, fabric::MonitorReply* reply);

// Counters of several endpoints together.
struct Traffic {
  std::array<std::uint64_t, fabric::path_count> messages{}, bytes{};
  std::array<std::uint64_t, fabric::Statistics::size_buckets> sizes{};
  std::uint64_t received_messages = 0, received_bytes = 0;
  std::uint64_t unexpected_messages = 0, unexpected_bytes = 0;
  std::uint64_t copies_in_flight = 0, fallbacks = 0, rma_operations = 0, atomic_operations = 0;
  std::uint64_t peers = 0;  // the most that one endpoint knows

  void add(const fabric::MonitorReply& reply);
  std::uint64_t all_messages() const;
  std::uint64_t all_bytes() const;
};

}  // namespace haul::cli
