// Turns a failed haul call into a CommandFailure.
#include "tools/failure.hpp"

#include <fmt/format.h>
#include <haul/haul.h>

namespace haul::tools {

void require(int code, const char* what) {
  if (code >= 0) return;
  const char* sentence = haul_last_error();
  if (sentence == nullptr || *sentence == '\0') sentence = haul_strerror(code);
  throw CommandFailure(fmt::format("{} failed: {}", what, sentence));
}

}  // namespace haul::tools
