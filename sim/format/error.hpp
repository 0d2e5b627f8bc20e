// What goes wrong with traces and streams.
#pragma once

#include <stdexcept>

namespace bcisim {

// A file that cannot be read or written, or that does not hold what it must. what() is one
// sentence: the file, where known the offset in it, the cause and the remedy. The object that threw
// it is of no further use.
class TraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace bcisim
