// The endpoints of running processes, and what they report (fabric/transport/monitor).
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cli/mpi/report/fabric_reply.hpp"
#include "fabric/transport/monitor.hpp"

namespace haul::cli {

// One look at one endpoint.
struct EndpointLook {
  std::string name;  // of its socket
  pid_t pid = 0;     // as seen from here; 0 if the process has none in this pid namespace
  fabric::MonitorReply reply;
};

// Asks every endpoint of this user in this network namespace. An endpoint that does not answer
// within a second (a stopped process) or speaks another version is left out; its name is added to
// `silent` unless that is null.
std::vector<EndpointLook> look_at_endpoints(std::vector<std::string>* silent = nullptr);

// Asks the endpoints of one process. Throws tools::CommandFailure if it has none or does not
// answer.
std::vector<EndpointLook> look_at_process(pid_t pid);

// The name of a process's program, fit for a terminal; "" if there is no such process.
std::string process_name(pid_t pid);

// The counters of several endpoints added up.
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
