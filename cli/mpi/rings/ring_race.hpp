// How rings are written best between two CPUs of this machine, found out by racing the ways to do
// it.
#pragma once

#include <functional>
#include <optional>

#include "base/private.hpp"
#include "cli/mpi/rings/ring_pair.hpp"

namespace haul::cli {

// Told how much of a race is over, from 0 to 1.
using RaceProgress = std::function<void(double)>;

// The fastest of the ways tried, with how long messages take that way; the usual one where none is
// clearly faster. Takes some 200 ms of both CPUs. Nothing: messages went wrong, or the CPUs were
// busy with other work (`ran_share` of the pair tells).
std::optional<HaulPrivateRing> race_rings(RingPair& pair, const RaceProgress& progress);

}  // namespace haul::cli
