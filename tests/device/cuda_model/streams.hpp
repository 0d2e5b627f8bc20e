// The model's streams: threads that copy, in order.
#pragma once

#include <cstdint>

namespace haul_model {

// Waits until no stream has anything to do, or all are stuck.
void drain_streams();
// Does a copy that has not ended touch the range that begins there?
bool is_used_by_streams(std::uintptr_t begin);

}  // namespace haul_model
