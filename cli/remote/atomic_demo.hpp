// The demo's stop about remote atomics: a counter on another host.
#pragma once

#include "bench/kit/stage.hpp"

namespace haul::cli {

// Makes two hosts of network namespaces, counts at one from the other, by a thread there, by Redis
// where it is installed, and in the receive path, and shows what one fetch&add takes. Says in one
// line what is missing where that cannot be.
void show_counter(const bench::Stage& stage);

}  // namespace haul::cli
