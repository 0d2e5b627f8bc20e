// Bytes and nanoseconds for people.
#include "tools/units.hpp"

#include <fmt/format.h>

namespace haul::tools {
namespace {

// Three significant digits without an exponent.
std::string three_digits(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}f}", value, value >= 9.995 ? 1 : 2);
}

}  // namespace

std::string show_bytes(std::uint64_t bytes) {
  const char* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 4; value /= 1024) ++unit;
  std::string digits = fmt::format("{:.1f}", value);
  if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
  return fmt::format("{} {}", digits, names[unit]);
}

std::string show_ns(double ns) {
  if (ns < 10) return fmt::format("{:.1f} ns", ns);
  if (ns < 1000) return three_digits(ns) + " ns";
  if (ns < 1e6) return three_digits(ns / 1e3) + " us";
  if (ns < 1e9) return three_digits(ns / 1e6) + " ms";
  return three_digits(ns / 1e9) + " s";
}

}  // namespace haul::tools
