// How much a trace holds.
#pragma once

#include <cstdint>

namespace bcisim {

struct Totals {
  std::uint64_t statics = 0, instructions = 0, references = 0, events = 0, copies = 0, devices = 0;

  bool operator==(const Totals&) const = default;
};

}  // namespace bcisim
