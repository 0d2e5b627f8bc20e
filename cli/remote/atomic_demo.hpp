// The demo's stop about remote atomics: a counter on another host.
#pragma once

#include "bench/kit/stage.hpp"

namespace haul::cli {

// Makes two hosts out of network namespaces and counts at one of them from the other: by a thread
// there, by Redis if it is installed, and in the receive path. Shows how long one fetch&add takes.
// If something is missing for that, one line says what.
void show_counter(const bench::Stage& stage);

}  // namespace haul::cli
