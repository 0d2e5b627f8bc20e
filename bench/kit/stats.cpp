// Medians and ratios.
#include "bench/kit/stats.hpp"

#include <algorithm>
#include <cmath>

namespace haul::bench {

double quantile(Samples samples, double q) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  double at = q * static_cast<double>(samples.size() - 1);
  auto below = static_cast<std::size_t>(at);
  std::size_t above = std::min(below + 1, samples.size() - 1);
  double part = at - static_cast<double>(below);
  return samples[below] * (1 - part) + samples[above] * part;
}

double median(const Samples& samples) {
  return quantile(samples, 0.5);
}

Ratio spread_of(const Samples& ratios) {
  return {quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75)};
}

Ratio ratio_of(const Samples& numerators, const Samples& denominators) {
  Samples ratios;
  for (std::size_t i = 0; i < std::min(numerators.size(), denominators.size()); ++i) {
    if (denominators[i] > 0) ratios.push_back(numerators[i] / denominators[i]);
  }
  return spread_of(ratios);
}

Samples sum_of(const Samples& a, const Samples& b) {
  Samples sums;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sums.push_back(a[i] + b[i]);
  return sums;
}

double round1(double value) {
  return std::round(value * 10) / 10;
}
double round3(double value) {
  double scale = 1000;
  const double magnitude = std::fabs(value);
  if (magnitude > 1e-9 && magnitude < 0.1)
    scale = std::pow(10, 2 - std::floor(std::log10(magnitude)));
  return std::round(value * scale) / scale;
}

}  // namespace haul::bench
