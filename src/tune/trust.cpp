// The limits of trust, with what was seen on quiet and on busy machines.
#include "tune/trust.hpp"

#include <algorithm>

namespace haul::tune {

namespace {

constexpr double least_ran = 0.8, most_stolen = 0.05, widest_spread = 0.5;
constexpr double noise = 1.05;      // the factor by which like figures may be out of order
constexpr double least_step = 1.2;  // from a copy in the nearest cache to one in memory
constexpr double distance_factor = 3, speed_factor = 2;
constexpr std::uint64_t day_s = 24 * 3600, lifetime_s = 30 * day_s;
constexpr std::uint64_t speed_after_s = 600, distance_after_s = 3600;

bool differ(double a, double b, double factor) noexcept {
  return a > 0 && b > 0 && std::max(a, b) > factor * std::min(a, b);
}

}  // namespace

// (NaN fails each comparison, so each comparison asks for the good case.)
const char* distrust(const Measured& measured) noexcept {
  const plan::Calibration& figures = measured.figures;
  const Quality& quality = measured.quality;
  if (!(quality.ran_share >= least_ran)) return "the CPUs were busy with other work";
  if (!(quality.stolen_share <= most_stolen)) return "the host took the CPUs away";
  if (!(quality.spread <= widest_spread)) return "repeated runs took very different times";
  if (!(figures.hot_line_ns * least_step <= figures.cold_line_ns))
    return "copies within the caches took as long as from memory";
  if (!(figures.hot_line_ns <= figures.l3_line_ns * noise &&
        figures.l3_line_ns <= figures.cold_line_ns * noise)) {
    return "copies in a nearer cache took longer than in a farther one";
  }
  return nullptr;
}

plan::Calibration in_order(const plan::Calibration& figures) noexcept {
  plan::Calibration ordered = figures;
  ordered.l3_line_ns = std::max(ordered.l3_line_ns, ordered.hot_line_ns);
  ordered.cold_line_ns = std::max(ordered.cold_line_ns, ordered.l3_line_ns);
  return ordered;
}

const char* outdated(const Measured& stored, const Seen& seen) noexcept {
  const std::uint64_t made_s = stored.quality.measured_at_s;
  if (seen.now_s > made_s + lifetime_s) return "it is more than 30 days old";
  if (made_s > seen.now_s + day_s) return "it is dated in the future";
  if (seen.now_s >= made_s + speed_after_s &&
      differ(stored.figures.hot_line_ns, seen.hot_line_ns, speed_factor)) {
    return "the machine does not copy as fast as it did then";
  }
  if (seen.now_s >= made_s + distance_after_s &&
      differ(stored.figures.round_trip_ns, seen.round_trip_ns, distance_factor)) {
    return "the cores are not as far apart as they were then";
  }
  return nullptr;
}

unsigned repeat_after_s(unsigned disturbed_runs) noexcept {
  constexpr unsigned first_s = 10, repeats = 7;
  return disturbed_runs >= 1 && disturbed_runs <= repeats ? first_s << (disturbed_runs - 1) : 0;
}

}  // namespace haul::tune
