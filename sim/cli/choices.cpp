#include "cli/choices.hpp"

#include <fmt/format.h>

#include <array>

#include "cli/commands.hpp"

namespace bcisim::cli {
namespace {

// What each is, in half a line, in the order of the enumerators.
constexpr std::array<std::string_view, schemes.size()> scheme_words{
    "the loops that were traced; what others are compared with",
    "loops of 16 bytes a turn",
    "one instruction, but a load and a store for each 8 bytes",
    "bulk instructions, retire when the copy is done (CopyEng)",
    "bulk, retire early; a dependent waits for the copy (0-DMA)",
    "bulk, retire early; a dependent waits for its block (FastBCI)",
    "as copy-engine (a limit of figure 2)",
    "as fast-bci, with an engine for each copy (a limit)",
    "as that, and copies help caches and never harm (a limit)"};
constexpr std::array<std::string_view, every_affinity.size()> affinity_words{
    "cacheable: the side's blocks come into the caches",
    "neutral: what is cached stays, nothing new comes in",
    "non-cacheable: what is cached goes, nothing new comes in"};

}  // namespace

Scheme scheme_of(const std::string& name) {
  std::string names;
  for (const SchemeTraits& traits : schemes) {
    if (traits.name == name) return traits.scheme;
    names += (names.empty() ? "" : ", ") + std::string(traits.name);
  }
  throw UsageError(fmt::format("there is no scheme '{}'; choose one of {}", name, names));
}

Affinities affinities_from(const std::string& name) {
  if (const auto found = affinities_of(name)) return *found;
  std::string names;
  for (const Affinities one : every_affinities) names += (names.empty() ? "" : ", ") + name_of(one);
  throw UsageError(
      fmt::format("'{}' are no affinities, source_destination; choose one of {}", name, names));
}

std::string help_of_schemes() {
  std::string text = "Schemes, how copies are made:";
  for (const SchemeTraits& traits : schemes)
    text += fmt::format("\n  {:<20} {}", traits.name,
                        scheme_words[static_cast<std::size_t>(traits.scheme)]);
  return text;
}

std::string help_of_affinities() {
  std::string text = "Affinities, of the source and of the destination, such as NEU_C:";
  for (const Affinity affinity : every_affinity)
    text += fmt::format("\n  {:<4} {}", name_of(affinity),
                        affinity_words[static_cast<std::size_t>(affinity)]);
  return text;
}

}  // namespace bcisim::cli
