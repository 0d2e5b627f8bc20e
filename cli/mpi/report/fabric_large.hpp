// The part of a job's report that is about large messages: what their paths gained, which memory
// kept them from being mapped, and how many came while their rank computed.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/mpi/fabric_collector.hpp"
#include "cli/mpi/mpi.hpp"
#include "cli/mpi/report/fabric_gains.hpp"

namespace haul::cli {

// Nothing if no message was large.
void print_large(std::FILE* stream, const std::vector<EndpointReport>& reports,
                 const RingPrice& ring, SharedMemory shared);
nlohmann::ordered_json large_document(const std::vector<EndpointReport>& reports,
                                      const RingPrice& ring, SharedMemory shared);

}  // namespace haul::cli
