// Schemes and affinities as a user names them.
#pragma once

#include <string>

#include "model/affinity.hpp"
#include "model/scheme.hpp"

namespace bcisim::cli {

// Throw UsageError, which lists what there is.
Scheme scheme_of(const std::string& name);
Affinities affinities_from(const std::string& name);

// For the end of --help: each by name, and what it is.
std::string help_of_schemes();
std::string help_of_affinities();

}  // namespace bcisim::cli
