// Cache affinity: how one side of a request should be left in the cache. Source: paper 003, III-B.
#pragma once

#include <cstdint>

namespace haul {

enum class Affinity : std::uint8_t {
  cacheable = 0,      // brought into the cache: the caller will touch it soon
  non_cacheable = 1,  // kept out of, or put out of, the cache: nobody will touch it soon
  neutral = 2,        // left as found: cached stays cached, uncached stays uncached
};

}  // namespace haul
