// Hosts of the lock soak: one of each member, and the home, at one bad cable. Needs root; failures
// are tools::CommandFailure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/atomic/faults.hpp"

namespace atomic_test {

class Star {
 public:
  Star(unsigned members, const FaultRates& rates);

  const haul::bench::Namespace& home() const { return *hosts_.back(); }
  const haul::bench::Namespace& host(unsigned member) const { return *hosts_[member]; }
  static std::string address(unsigned member) { return "10.0.0." + std::to_string(member + 1); }
  static std::string home_address() { return "10.0.0.100"; }
  // As haul_atomic_node_open() wants it in the host with this address.
  static std::string responder(const std::string& kind, const std::string& address);
  BadCable::Counts counts() const;  // of all ways

 private:
  std::vector<std::unique_ptr<haul::bench::Namespace>> hosts_;  // members, then the home
  std::unique_ptr<BadCable> cable_;
};

}  // namespace atomic_test
