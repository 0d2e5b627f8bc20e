// Cache affinity of a copy's side (paper 003, III-B).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bcisim {

enum class Affinity : std::uint8_t {
  cacheable,     // its blocks come into the caches
  neutral,       // what is there stays, nothing new comes in
  non_cacheable  // what is there goes, nothing new comes in
};
inline constexpr std::array<Affinity, 3> every_affinity{Affinity::cacheable, Affinity::neutral,
                                                        Affinity::non_cacheable};

struct Affinities {
  Affinity source = Affinity::cacheable, destination = Affinity::cacheable;
  bool operator==(const Affinities&) const = default;
};
// All pairs, by their sources.
inline constexpr std::array<Affinities, 9> every_affinities = [] {
  std::array<Affinities, 9> all;
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = {every_affinity[i / 3], every_affinity[i % 3]};
  return all;
}();

// As in the paper's figure 10: C, NEU; and NC.
constexpr std::string_view name_of(Affinity affinity) {
  constexpr std::array<std::string_view, 3> names{"C", "NEU", "NC"};
  return names[static_cast<std::size_t>(affinity)];
}

// "NEU_C": source neutral, destination cacheable.
inline std::string name_of(Affinities affinities) {
  return std::string(name_of(affinities.source)) + "_" +
         std::string(name_of(affinities.destination));
}

// The affinities of that name; none if it is none.
inline std::optional<Affinities> affinities_of(std::string_view name) {
  for (const Affinities one : every_affinities) {
    if (name_of(one) == name) return one;
  }
  return std::nullopt;
}

}  // namespace bcisim
