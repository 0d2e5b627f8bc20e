// Engines other than the CPU, in a worker whose settings ask for one.
#pragma once

#include <haul/haul.h>

namespace haul::bench {

// What is known of an engine now; all zeros if there is none of this name.
haul_engine_info engine_info(const char* name);

// Submits the request and looks at it until it has ended; nothing else helps to copy. Throws
// CommandFailure.
void copy_by_caller(const haul_request& request);

// Copies until the engine that HAUL_PLAN_ENGINE names is open; the request is long enough to ask
// for it. Throws CommandFailure with the engine's own sentence if it does not open.
void open_asked_engine(const haul_request& request);

}  // namespace haul::bench
