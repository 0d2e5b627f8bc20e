// The four schemes of paper 000 (SCNI, MCNI, SCI, MCI) by each engine of this machine, each with
// memory registered as asked. A scheme is a process of its own, since settings hold for a process;
// the processes take turns.
#pragma once

#include <string>
#include <vector>

#include "bench/copy/schemes/measurement.hpp"
#include "bench/kit/suite.hpp"

namespace haul::bench {

// The schemes of the engines that are asked for, with memory registered in each of these ways where
// an engine needs that; of `all`, the CPU's and those of each device that opens here. Throws
// CommandFailure with an engine's own sentence if it does not open.
std::vector<EngineScheme> schemes_of(const std::vector<std::string>& engines,
                                     const std::vector<std::string>& registrations);
std::vector<EngineScheme> schemes_of_cpu();

// Measures each case by each scheme, and adds what CPU time a copy takes.
void run_schemes(SuiteRun& session, std::vector<Row>& rows, const CopyMeasurement& measurement,
                 const std::vector<Case>& cases, const std::vector<EngineScheme>& schemes);

// Measures the cases as haul plans them, in this process; or, where schemes are asked for, by
// these.
void run_measurement(SuiteRun& session, std::vector<Row>& rows, const CopyMeasurement& measurement,
                     const std::vector<Case>& cases);

}  // namespace haul::bench
