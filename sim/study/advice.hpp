// Which cache affinities suit each place of a program that copies: what a caller of haul would say
// in a request.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/affinity.hpp"
#include "study/profile.hpp"

namespace bcisim {

struct RankedAffinities {
  Affinities affinities;
  double gain_percent = 0;  // of the whole program's speed, over the site's worst affinities
};

struct SiteAdvice {
  ProfiledSite site;
  std::vector<RankedAffinities> ranking;  // best first
};

struct AdviceOptions {
  unsigned threads = 1;
  unsigned sites = 5;  // those that copy most
  std::uint64_t instructions = ~std::uint64_t{0};
  std::function<void(double)> progress;  // 0 to 1; may be empty
};

// Each site's affinities are varied while all others are neutral, under FastBCI. Throws TraceError.
std::vector<SiteAdvice> advise(const std::string& trace, const AdviceOptions& options);

}  // namespace bcisim
