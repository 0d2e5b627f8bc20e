// Asking the node's service how it is, and asking it to end (haul top, haul serve --status,
// --stop).
#pragma once

#include <sys/types.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "base/os/descriptor.hpp"
#include "request/wire.hpp"
#include "service/talk/printable.hpp"

namespace haul::service {

struct Snapshot {
  wire::Stats stats;
  std::vector<wire::ClientStats> clients;
};

// Nobody listens at any of the places. This is an ordinary case, unlike other failures.
struct NoService : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A connection to the running service. Not for several threads at once. Every failure is a
// std::runtime_error whose sentence has cause and remedy; nothing waits longer than 2 s for an
// answer, so that a stopped or broken service is an error and no hang.
class Monitor {
 public:
  // At `path`, or, if that is "", at the first of the usual places where one listens. Throws
  // NoService if there is none.
  explicit Monitor(const std::string& path = "");
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  Snapshot snapshot();
  // Asks it to end and waits until it has: its connection closed and, where its pid can be seen,
  // its process gone. False if it has not within timeout_ms. The connection is of no use
  // afterwards.
  bool stop(int timeout_ms);

  // Has it open its log again, by SIGHUP. Throws where its process cannot be seen.
  void reopen_log();

  const std::string& socket_path() const { return path_; }
  const std::string& version() const { return version_; }
  pid_t pid() const { return pid_; }  // in the service's own pid namespace
  // Whether that is this process's pid namespace too. Where it is not, or cannot be told, pid() may
  // name another process here, or none.
  bool pid_is_ours() const { return process_.valid(); }
  // Why the service cannot read and write this process's memory; "" if it can.
  const std::string& why_not() const { return why_not_; }

 private:
  void greet();
  void send(const void* message, std::size_t bytes);
  // The service's next message; false if the service has closed. Throws after 2 s.
  bool receive(void* message, std::size_t bytes, wire::MessageKind wanted);
  std::runtime_error silent() const;
  std::string kill_remedy() const;

  os::Descriptor socket_, process_;  // process_: its pidfd
  pid_t pid_ = 0;
  pid_t seen_pid_ = 0;  // the service's in this pid namespace, if that is sure; else 0
  std::string path_, version_, why_not_;
};

}  // namespace haul::service
