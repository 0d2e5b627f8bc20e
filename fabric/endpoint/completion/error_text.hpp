// Errors in words, for fi_cq_strerror() and fi_eq_strerror().
#pragma once

#include <cstdio>

#include "fabric/transport/libfabric.hpp"

namespace haul::fabric {

// prov_errno is the FI_E* value here. The text, and a copy of it in buffer (if there is one).
inline const char* error_text(int error, char* buffer, std::size_t bytes) noexcept {
  const Libfabric* library = libfabric();
  const char* text = library != nullptr ? library->strerror(error) : "unknown error";
  if (buffer == nullptr || bytes == 0) return text;
  std::snprintf(buffer, bytes, "%s", text);
  return buffer;
}

}  // namespace haul::fabric
