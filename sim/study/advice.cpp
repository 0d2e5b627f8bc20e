#include "study/advice.hpp"

#include <algorithm>

#include "study/experiments.hpp"
#include "study/series.hpp"

namespace bcisim {
namespace {

constexpr Affinities neutral{Affinity::neutral, Affinity::neutral};

std::vector<Affinities> choices_of(const ProfiledSite& site) {
  std::vector<Affinities> choices;
  for (const Affinity destination : every_affinity) {
    if (site.kind == CopyKind::fill) {
      choices.push_back({Affinity::neutral, destination});
      continue;
    }
    for (const Affinity source : every_affinity) choices.push_back({source, destination});
  }
  return choices;
}

// How far a side is from what is preferred where nothing tells: cacheable, neutral, non-cacheable.
// A default and the last are less than two neutrals.
unsigned oddness_of(Affinity affinity) {
  constexpr std::array<unsigned, 3> oddness{0, 2, 3};
  return oddness[static_cast<std::size_t>(affinity)];
}

}  // namespace

Affinities advised_of(const std::vector<RankedAffinities>& ranking) {
  const double equal = static_cast<double>(ranking.front().cycles) * (1 + noise);
  const auto oddness = [](const RankedAffinities& one) {
    return oddness_of(one.affinities.source) + oddness_of(one.affinities.destination);
  };
  const RankedAffinities* plainest = &ranking.front();
  for (const RankedAffinities& one : ranking) {
    if (static_cast<double>(one.cycles) <= equal && oddness(one) < oddness(*plainest))
      plainest = &one;
  }
  return plainest->affinities;
}

std::vector<SiteAdvice> advise(const std::string& trace, const AdviceOptions& options) {
  std::vector<SiteAdvice> advice;
  for (const ProfiledSite& site : profile_of(trace).sites) {
    if (advice.size() == options.sites) break;
    if (site.kind != CopyKind::with_checksum) advice.push_back({site, {}, {}});
  }
  Experiments experiments({{"", trace, 0}});
  const auto name = [](const SiteAdvice& one, Affinities affinities) {
    return std::to_string(one.site.address) + " " + name_of(affinities);
  };
  for (const SiteAdvice& one : advice) {
    for (const Affinities affinities : choices_of(one.site)) {
      Configuration configuration = configuration_of(Scheme::fast_bci, neutral);
      configuration.replay.fills = true;
      if (affinities != neutral)
        configuration.replay.affinities.of_site[one.site.address] = affinities;
      experiments.add(name(one, affinities), configuration);
    }
  }
  if (advice.empty()) return advice;
  experiments.run(options.simulation);
  for (SiteAdvice& one : advice) {
    std::uint64_t worst = 0;
    for (const Affinities affinities : choices_of(one.site)) {
      worst = std::max(worst, experiments.result(0, name(one, affinities)).cycles);
    }
    for (const Affinities affinities : choices_of(one.site)) {
      const std::uint64_t cycles = experiments.result(0, name(one, affinities)).cycles;
      one.ranking.push_back(
          {affinities, cycles,
           100.0 * (static_cast<double>(worst) / static_cast<double>(cycles) - 1)});
    }
    std::stable_sort(
        one.ranking.begin(), one.ranking.end(),
        [](const RankedAffinities& a, const RankedAffinities& b) { return a.cycles < b.cycles; });
    one.advised = advised_of(one.ranking);
  }
  return advice;
}

}  // namespace bcisim
