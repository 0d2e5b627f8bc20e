// Figures for monitors.
#pragma once

#include "service/hub.hpp"

namespace haul::service {

wire::Stats stats_of(const Hub& hub);
wire::ClientStats stats_of(const Hub& hub, Client& client);

}  // namespace haul::service
