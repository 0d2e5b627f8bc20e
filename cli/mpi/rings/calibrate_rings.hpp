// The calibration of messages: rings between CPUs near and far, measured and stored.
#pragma once

#include <string>

#include "base/private.hpp"
#include "cli/mpi/rings/ring_race.hpp"

namespace haul::cli {

struct RingCalibration {
  HaulPrivateRing near, far;  // measured_at_s 0: not measured
  // Why one or both were not measured or are not kept, in a sentence with a remedy; empty: there is
  // nothing to say. (A machine whose CPUs all share a cache has no far ones.)
  std::string why;
};

// Measures between CPUs of this process's affinity mask on threads of its own, and stores the
// figures beside those of haul_tune(), which must be there. Takes a fraction of a second of two
// CPUs for each distance.
RingCalibration calibrate_rings(const RaceProgress& progress);

// Before a job of MPI's: measures rings, and copies if no figures of theirs are stored, where no
// ring was measured here within 30 days, two CPUs may be used, one of all is idle, and
// HAUL_TUNE_BACKGROUND is on. What comes of it is the job's gain, never its failure, and standard
// output stays empty.
void calibrate_before_job();

}  // namespace haul::cli
