// How much a trace holds.
#pragma once

#include <array>
#include <cstdint>

namespace bcisim {

struct Totals {
  std::uint64_t statics = 0, instructions = 0, references = 0, events = 0, copies = 0, devices = 0;

  // In the order of a trace's header.
  static const std::array<std::uint64_t Totals::*, 6> fields;
  bool operator==(const Totals&) const = default;
};
inline constexpr std::array<std::uint64_t Totals::*, 6> Totals::fields{
    &Totals::statics, &Totals::instructions, &Totals::references,
    &Totals::events,  &Totals::copies,       &Totals::devices};

// How much there is of one count for each of another; 0 where there is none of the other.
constexpr double ratio(std::uint64_t count, std::uint64_t of) {
  return of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of);
}

}  // namespace bcisim
