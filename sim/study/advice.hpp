// Which cache affinities suit each place of a program that copies: what a caller of haul would say
// in a request.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/affinity.hpp"
#include "study/profile.hpp"
#include "study/simulation.hpp"

namespace bcisim {

struct RankedAffinities {
  Affinities affinities;
  std::uint64_t cycles = 0;  // of the whole program
  double gain_percent = 0;   // of the whole program's speed, over the site's worst affinities
};

struct SiteAdvice {
  ProfiledSite site;
  std::vector<RankedAffinities> ranking;  // best first
  Affinities advised;                     // advised_of(ranking)
};

// Runs whose cycles differ by less than this share of them are equal: what one place's blocks do to
// the timing of all that follows is chance, and the two models of one machine differ by more in
// what they say of a scheme (`bcisim compare`).
inline constexpr double noise = 0.003;
// haul ignores affinities of copies of fewer bytes (include/haul/haul.h, haul_affinity).
inline constexpr std::uint64_t least_affinity_bytes = 256;
// What haul does where a request says nothing (HAUL_CACHEABLE).
inline constexpr Affinities haul_default{Affinity::cacheable, Affinity::cacheable};

// Of those that are as fast as the fastest but for noise, the plainest: a side is best left at
// haul's default; neutral disturbs caches less than non-cacheable. Of a ranking that is not empty.
Affinities advised_of(const std::vector<RankedAffinities>& ranking);

// Are the site's copies, on average, too short for haul to heed their affinities?
inline bool is_too_short(const ProfiledSite& site) {
  return site.bytes < site.copies * least_affinity_bytes;
}

struct AdviceOptions {
  unsigned sites = 5;  // those that copy most
  SimulationOptions simulation;
};

// Each site's affinities are varied while all others are neutral, under FastBCI. A fill's source is
// neutral throughout. Throws TraceError.
std::vector<SiteAdvice> advise(const std::string& trace, const AdviceOptions& options);

}  // namespace bcisim
