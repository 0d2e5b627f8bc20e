// Writing the one JSON document of --json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace haul::cli {

// To the file, or to standard output if `path` is "-". Throws tools::CommandFailure.
void write_document(const std::string& path, const nlohmann::ordered_json& document);

// Throws tools::CommandFailure if the file could not be written: an unusable path is noticed before
// the work, not after.
void check_writable(const std::string& path);

}  // namespace haul::cli
