// The engines of this process, as `haul info` shows them, and how a process comes by one that must
// be opened first.
#pragma once

#include <haul/haul.h>

#include <string>
#include <vector>

namespace haul::bench {

// All engines, once none is being opened any more, or after three seconds.
std::vector<haul_engine_info> settled_engines();

// What the sentence of an engine that is available says of it. (haul_engine() has no fields for
// these.)
bool is_device(const haul_engine_info& engine);  // or what stands for one: timed when it was opened
bool is_hardware(const haul_engine_info& engine);
bool registers_memory(const haul_engine_info& engine);

// Copies until the engine that HAUL_PLAN_ENGINE names is open, and returns what is known of it.
// Throws CommandFailure with the engine's own sentence if it cannot be used.
haul_engine_info open_engine(const std::string& name);

}  // namespace haul::bench
