// The suites of remote atomics, for the table of suites.
#pragma once

#include <vector>

#include "bench/kit/suite.hpp"

namespace haul::bench {

std::vector<Suite> atomic_suites();

void run_atomic(Session& session, std::vector<Row>& rows);
void run_lock(Session& session, std::vector<Row>& rows);
void run_bystander(Session& session, std::vector<Row>& rows);
void run_bystander_bandwidth(Session& session, std::vector<Row>& rows);

}  // namespace haul::bench
