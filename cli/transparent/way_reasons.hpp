// Why the large copies of an unmodified program go the ways they go.
#pragma once

#include <string>

namespace haul::cli {

// Prints it for a process that runs under `haul run --transparent --report`, by its number, as it
// is now; or for a report that was written (`--report --json FILE`). Throws CommandFailure.
void explain_ways(const std::string& process_or_file);

}  // namespace haul::cli
