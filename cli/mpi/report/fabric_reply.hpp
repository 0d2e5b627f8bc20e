// A packet that claims to be what an endpoint reports of itself.
#pragma once

#include <cstddef>

#include "fabric/transport/monitor.hpp"

namespace haul::cli {

// Copies it; false if it is of another version, or none at all. Afterwards every text is terminated
// and printable, and every count and every kind is within its bounds. Counters may hold anything.
bool check_reply(const void* packet, std::size_t bytes, fabric::MonitorReply* reply);

}  // namespace haul::cli
