// A request as the planner sees it.
#pragma once

#include <cstdint>

#include "plan/plan.hpp"
#include "request/request.hpp"
#include "request/rings.hpp"

namespace haul {

// Fills in what make_plan() asks for, except ring_full: the request, the engines that reach its
// memory, and the state of the process. `ring` is the calling thread's; nullptr: it has none. This
// may read from the source, where the program's memory may fault, so the caller holds no
// BusyThread.
void view_request(const Request& request, Ring* ring, std::uint64_t burst_bytes,
                  plan::Inputs* inputs) noexcept;

// Does the request name memory of another process that this one reaches without the service?
bool names_peer(const Request& request) noexcept;
// Does it name a device's own memory?
bool names_device_memory(const Request& request) noexcept;

}  // namespace haul
