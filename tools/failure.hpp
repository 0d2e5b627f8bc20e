// What a command or a measurement throws when it cannot go on: one sentence, cause and remedy.
#pragma once

#include <stdexcept>

namespace haul::tools {

struct CommandFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws a CommandFailure with haul's sentence if `code` is negative.
void require(int code, const char* what);

}  // namespace haul::tools
