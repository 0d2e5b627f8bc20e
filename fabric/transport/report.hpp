// What an endpoint reports of itself: to a program that asks its socket (`haul top`), and unasked
// to a collector (`haul run --report`, knob HAUL_FABRIC_REPORT).
#pragma once

#include <cstdint>

#include "fabric/transport/monitor.hpp"

namespace haul::fabric {

// Everything but the peers and `last`. statistics may be nullptr: zeroes; so may observation.
// Thread-safe.
void fill_counters(const Statistics* statistics, const Observation* observation,
                   std::uint64_t opened_ns, MonitorReply* reply) noexcept;

// This process's rank in its job, as an MPI's launcher has put it into the environment; -1: none
// has. Reads the environment, so not beside a thread that changes it.
std::int32_t rank_in_job() noexcept;

// Connects to the collector, if one is named: the descriptor, or -1. Waits a second at most.
int connect_to_collector() noexcept;
// Failures are logged (info) and forgotten.
void tell_collector(int socket, const MonitorReply& reply) noexcept;

}  // namespace haul::fabric
