// What a program's large copies cost it, and what haul would make of them.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/transparent/gains.hpp"
#include "cli/transparent/transparent_run.hpp"

namespace haul::cli {

// Both measure gains where they need them.
void print_profile(std::FILE* stream, const TransparentOutcome& outcome, Gains& gains);
nlohmann::ordered_json profile_document(const TransparentOutcome& outcome, Gains& gains);

}  // namespace haul::cli
