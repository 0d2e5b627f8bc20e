// What programs work on: made anew for each measurement, the same each time.
#pragma once

#include <cstddef>
#include <string>

namespace haul::bench {

// Lines of words, about as compressible as text. Throws CommandFailure if it cannot be written.
void write_text(const std::string& path, std::size_t bytes);

// A repository of git with a history of `commits`, in which one file is large. "", or why git could
// not make it.
std::string make_repository(const std::string& path, unsigned commits);

}  // namespace haul::bench
