// Why a request that only the node's service or a device can carry out is not carried out now: this
// process's CPU cannot take its place.
#pragma once

#include "base/error.hpp"
#include "plan/plan.hpp"
#include "request/request.hpp"

namespace haul {

// What became of a request that was to be handed over.
enum class HandOver : std::uint8_t { done, no_room, no_mover };

// Of memory that another process has granted.
Error no_grant_now(const plan::Inputs& inputs, HandOver result) noexcept;
// Of a device's own memory: no engine does such a request, or its engine is not alive.
Error no_device(const Request& request, const plan::Inputs& inputs) noexcept;
// The same for a request that a device could do, though not now.
Error no_device_now(const plan::Inputs& inputs, HandOver result) noexcept;

}  // namespace haul
