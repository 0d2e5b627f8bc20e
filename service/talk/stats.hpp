// Figures for monitors.
#pragma once

#include "service/clients/hub.hpp"

namespace haul::service {

wire::Stats stats_of(const Hub& hub);
wire::ClientStats stats_of(Client& client);

}  // namespace haul::service
