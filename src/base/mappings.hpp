// Which memory a process shares with others.
#pragma once

#include <cstdint>

namespace haul::os {

// Calls act(begin, end, context) for each mapping of this process that is MAP_SHARED, by
// /proc/self/maps. False if that cannot be read. Calls no malloc, takes no lock.
using MappingAct = void (*)(std::uintptr_t begin, std::uintptr_t end, void* context);
bool for_each_shared_mapping(MappingAct act, void* context) noexcept;

}  // namespace haul::os
