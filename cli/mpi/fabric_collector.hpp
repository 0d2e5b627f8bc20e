// Collects what the endpoints of a job have done; each reports when it closes (HAUL_FABRIC_REPORT).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/mpi/fabric_monitor.hpp"

namespace haul::cli {

// One endpoint of the job.
struct EndpointReport {
  pid_t pid = 0;          // as the endpoint's process saw itself
  bool complete = false;  // false: it was killed before its last report, or is still open
  bool refused = false;   // it speaks another version, or nonsense
  fabric::MonitorReply reply;
};

// Listens from its construction on. Not thread-safe.
class Collector {
 public:
  Collector();  // throws tools::CommandFailure
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // What HAUL_FABRIC_REPORT is set to.
  const std::string& name() const { return name_; }

  // Sleeps until an endpoint says something, `watched` (a descriptor, or -1) can be read, or the
  // time is over; takes what has come.
  void wait(int watched, int timeout_ms);
  // Waits until no endpoint is open any more, but no longer than this.
  void drain(std::chrono::milliseconds limit);

  const std::vector<EndpointReport>& reports() const { return reports_; }

 private:
  struct Connection {
    int fd;
    std::size_t report;  // index in reports_
  };
  void accept_all();
  bool take(Connection& connection);  // false: it has closed

  std::string name_;
  int listener_ = -1;
  std::vector<Connection> open_;
  std::vector<EndpointReport> reports_;
};

}  // namespace haul::cli
