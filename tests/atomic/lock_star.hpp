// Hosts around a switch, each at the end of a bad cable of its own: what one sends another passes
// two of them. Needs root; failures are bench::Failure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/atomic/faults.hpp"

namespace atomic_test {

class Star {
 public:
  // `rates`: of a whole way, half of them each cable's.
  Star(unsigned members, const FaultRates& rates);

  const haul::bench::Namespace& home() const { return *hosts_.back(); }
  const haul::bench::Namespace& host(unsigned member) const { return *hosts_[member]; }
  static std::string address(unsigned member) { return "10.0.0." + std::to_string(member + 1); }
  static std::string home_address() { return "10.0.0.100"; }
  // As haul_atomic_open() wants it in the host with this address.
  static std::string responder(const std::string& kind, const std::string& address) {
    return kind + ":" + (kind.rfind("xdp-", 0) == 0 ? interface() : address);
  }
  BadCable::Counts counts() const;  // of all cables, both ways

 private:
  static std::string interface() { return "haul0"; }
  void add(const std::string& address, const FaultRates& rates);

  haul::bench::Namespace switch_;
  std::vector<std::unique_ptr<haul::bench::Namespace>> hosts_;  // members, then the home
  std::vector<std::unique_ptr<BadCable>> cables_;
};

}  // namespace atomic_test
