// The live counters of running processes that send messages by haul, for `haul top`.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "cli/mpi/fabric_monitor.hpp"

namespace haul::cli {

class MessageWatch {
 public:
  // Looks at all endpoints; lines() then covers the time since the look before.
  void look();
  bool empty() const { return now_.empty() && silent_ == 0; }
  // Two tables: the traffic by path, and the processes, busiest first. Rates need two looks.
  std::vector<std::string> lines() const;

 private:
  struct Process {
    Traffic since;  // sent since the look before
    Traffic now;
    unsigned endpoints = 0;
  };
  std::map<std::string, Traffic> before_, now_;  // by endpoint
  std::map<pid_t, Process> processes_;
  std::size_t silent_ = 0;
  double seconds_ = 0;
  std::chrono::steady_clock::time_point looked_{};
};

}  // namespace haul::cli
