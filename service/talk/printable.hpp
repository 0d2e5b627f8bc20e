// Text of another process, for people.
#pragma once

#include <cstddef>
#include <string>

namespace haul::service {

// Text from a fixed field that another process has filled: what cannot be printed becomes '?', so
// that no process writes to a terminal through another one.
std::string printable(const char* text, std::size_t size);
template <std::size_t size>
std::string printable(const char (&text)[size]) {
  return printable(text, size);
}

}  // namespace haul::service
