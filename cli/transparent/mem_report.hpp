// What became of a program's large copies, for people and as JSON.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/transparent/gains.hpp"
#include "cli/transparent/transparent_run.hpp"

namespace haul::cli {

// Both measure gains where libc made no call to judge by.
void print_copies(std::FILE* stream, const TransparentOutcome& outcome, Gains& gains);
nlohmann::ordered_json copies_document(const TransparentOutcome& outcome, Gains& gains);
// The processes of such a document. Throws nlohmann::json::exception for another one.
std::vector<ProcessTable> tables_of(const nlohmann::json& document);

// Why calls were not given to a mover.
void print_refusals(std::FILE* stream, const TransparentOutcome& outcome);

}  // namespace haul::cli
