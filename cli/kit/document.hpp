// Writing the one JSON document of --json, and texts for other programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace haul::cli {

// Writes to the file, or to standard output if `path` is "-". Throws tools::CommandFailure.
void write_document(const std::string& path, const nlohmann::ordered_json& document);

// Replaces the file by another with this text, at once: who reads it sees the old text or the new
// one. Others may read it, as the process's umask lets them. "-" is standard output. Throws
// tools::CommandFailure.
void replace_text(const std::string& path, const std::string& text);

// Throws tools::CommandFailure if the file cannot be written, so that an unusable path is noticed
// before the work is done.
void check_writable(const std::string& path);

}  // namespace haul::cli
