// A bad cable between hosts that are network namespaces: it loses, repeats and reorders the packets
// of remote atomics, both ways, whatever hooks and rings the hosts send and receive by. Needs root;
// failures are tools::CommandFailure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/remote/hosts/namespaces.hpp"
#include "tests/atomic/faults_facts.h"

struct bpf_object;

namespace atomic_test {

// Per mille of the packets, each way.
struct FaultRates {
  unsigned drop = 0, duplicate = 0, reorder = 0;
};

// An interface to be made, with an address such as "10.0.0.1/24".
struct CableEnd {
  const haul::bench::Namespace& host;
  std::string interface, address;
};

class BadCable {
 public:
  // Two ends, or up to 8. `native`: the XDP programs at them may be native ones.
  BadCable(const std::vector<CableEnd>& ends, const FaultRates& rates, bool native);
  ~BadCable();
  BadCable(const BadCable&) = delete;
  BadCable& operator=(const BadCable&) = delete;

  using Counts = std::array<std::uint64_t, FAULTS_EVENTS>;
  // Way i is that from ends[i].
  Counts counts(unsigned way) const;

 private:
  void open(unsigned ends, const FaultRates& rates, bool native);

  haul::bench::Namespace middle_;
  bpf_object* object_ = nullptr;
  int events_ = -1;
};

}  // namespace atomic_test
