// Summaries of repeated measurements: medians, tails, and ratios of runs made side by side.
#pragma once

#include <cstddef>
#include <vector>

namespace haul::bench {

using Samples = std::vector<double>;

// The q-quantile (0 to 1) by linear interpolation; 0 for no samples.
double quantile(Samples samples, double q);
double median(const Samples& samples);

// Ratios of pairs from the same repetition: the median, and the quartiles as the spread.
struct Ratio {
  double median = 0, low = 0, high = 0;
};
Ratio spread_of(const Samples& ratios);
Ratio ratio_of(const Samples& numerators, const Samples& denominators);

// Element by element.
Samples sum_of(const Samples& a, const Samples& b);

// One decimal for figures, three for ratios and rates: more digits would be noise. Of what is below
// 0.1, round3() keeps three digits from the first that is not zero, so that the rate of a slow
// device is not reported as none.
double round1(double value);
double round3(double value);

}  // namespace haul::bench
