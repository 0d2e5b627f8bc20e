#include "bench/kit/disturbance.hpp"

#include <cmath>

#include "base/machine/clock.hpp"

namespace haul::bench {
namespace {

constexpr unsigned span_pairs = 6;  // each time

}  // namespace

void Disturbance::take_turns(unsigned rate, const std::function<double(double rate)>& speed,
                             const std::function<std::uint64_t()>& operations) {
  for (unsigned pair = 0; pair < span_pairs; ++pair) {
    const double alone = speed(0);
    const std::uint64_t before = operations(), begin = now_ns();
    const double beside = speed(rate);
    rates.push_back(static_cast<double>(operations() - before) * 1e9 /
                    static_cast<double>(now_ns() - begin));
    if (alone <= 0) continue;  // another process had the core all the time
    ratios.push_back(beside / alone);
    idle.push_back(alone);
    loaded.push_back(beside);
  }
}

void Disturbance::write_to(Row& row, unsigned asked_per_s) const {
  row["asked_per_s"] = asked_per_s;
  row["rate_per_s"] = std::llround(median(rates));
  if (!times_us.empty()) {
    row["median_us"] = round3(median(times_us));
    row["p99_us"] = round3(quantile(times_us, 0.99));
  }
  put_ratio(row, "bystander_ratio", spread_of(ratios));
  row["repetitions"] = ratios.size();
}

}  // namespace haul::bench
