// What the service does a second, from two looks at it.
#pragma once

#include <string>
#include <vector>

#include "service/monitor.hpp"

namespace haul::cli {

struct ClientRates {
  wire::ClientStats now;
  double requests = 0, mapped_bytes = 0, kernel_bytes = 0;  // for each second
  double spared = 0;                                        // share of the time: 1 is a whole core
};

struct Rates {
  bool same_service = false;  // false: the service was restarted in between, and there are no rates
  double seconds = 0;
  double bytes = 0, requests = 0;    // for each second
  double cpu = 0;                    // share of a CPU
  std::vector<ClientRates> clients;  // busiest first
};

// Clients are the same if pid and name are, and if it was attached all the time between. The
// counters of a client that came in between start from zero; one that left is left out.
Rates rates_between(const service::Snapshot& before, const service::Snapshot& now);

}  // namespace haul::cli
