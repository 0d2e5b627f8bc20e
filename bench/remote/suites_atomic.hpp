// The suites of remote atomics, for the table of suites.
#pragma once

#include <vector>

#include "bench/kit/suite.hpp"

namespace haul::bench {

std::vector<Suite> atomic_suites();

void run_atomic(SuiteRun& session, std::vector<Row>& rows);
void run_lock(SuiteRun& session, std::vector<Row>& rows);
void run_bystander(SuiteRun& session, std::vector<Row>& rows);
void run_bystander_bandwidth(SuiteRun& session, std::vector<Row>& rows);

}  // namespace haul::bench
