// What an endpoint keeps beside its counters while somebody wants a report of it.
#pragma once

#include <cstdint>

#include "fabric/transport/large_messages.hpp"
#include "fabric/transport/slow_buffers.hpp"

namespace haul::fabric {

struct Observation {
  const std::int32_t rank;  // as the launcher has told the process; -1: it has not
  LargeMessages large;
  SlowBuffers slow;

  explicit Observation(std::int32_t of_rank) noexcept : rank(of_rank) {}
};

}  // namespace haul::fabric
