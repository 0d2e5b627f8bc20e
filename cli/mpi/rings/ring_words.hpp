// Rings as people and programs read of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/private.hpp"

namespace haul::cli {

// Two sentences: how packets are written, and how long messages take that way, if that was
// measured.
std::string describe_ring(const HaulPrivateRing& ring);

// Both distances on standard output, a paragraph each; of figures that were not measured it says
// so, and what to do.
void print_rings(const HaulPrivateMessageLimits& limits);

// {"near": {...}, "far": {...}}.
nlohmann::ordered_json rings_document(const HaulPrivateMessageLimits& limits);

}  // namespace haul::cli
