// Writing the one JSON document of --json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace haul::cli {

// Writes to the file, or to standard output if `path` is "-". Throws tools::CommandFailure.
void write_document(const std::string& path, const nlohmann::ordered_json& document);

// Throws tools::CommandFailure if the file cannot be written, so that an unusable path is noticed
// before the work is done.
void check_writable(const std::string& path);

}  // namespace haul::cli
