// The service's figures for Prometheus: the page of `haul serve --metrics` and `haul top
// --metrics`.
#pragma once

#include <string>

#include "cli/kit/exposition.hpp"
#include "service/monitor.hpp"

namespace haul::cli {

// Families haul_service_*, and haul_build_info with the service's version. Processes appear as the
// labels pid and name while they are clients, of which a service has 200 at most; connections of
// one process are added up.
void add_service_metrics(Exposition* page, const std::string& version,
                         const service::Snapshot& all);
// The same where no service answers: haul_service_up is 0.
void add_absent_service(Exposition* page);

}  // namespace haul::cli
