// Figures for monitors.
#pragma once

#include "service/node.hpp"

namespace haul::service {

wire::Stats stats_of(const Node& node);
wire::ClientStats stats_of(const Node& node, Client& client);

}  // namespace haul::service
