// What the service does a second, from two looks at it.
#pragma once

#include <string>
#include <vector>

#include "service/monitor.hpp"

namespace haul::cli {

struct ClientRates {
  wire::ClientStats now;
  double requests = 0, mapped_bytes = 0, kernel_bytes = 0;  // a second
  double spared = 0;                                        // share of the time: 1 is a whole core
};

struct Rates {
  bool same_service = false;  // false: it was started anew in between, and there are no rates
  double seconds = 0;
  double bytes = 0, requests = 0;    // a second
  double cpu = 0;                    // share of a CPU
  std::vector<ClientRates> clients;  // who moves most first
};

// A client is the same if its pid and name are and it was attached all the time between; one that
// came in between counts from nought, one that went is left out.
Rates rates_between(const service::Snapshot& before, const service::Snapshot& now);

}  // namespace haul::cli
