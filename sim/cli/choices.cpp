#include "cli/choices.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"

namespace bcisim::cli {
namespace {

// Half a line each.
std::string_view what_is(Scheme scheme) {
  switch (scheme) {
    case Scheme::traditional: return "the loops that were traced; what others are compared with";
    case Scheme::vector_loop: return "loops of 16 bytes a turn";
    case Scheme::rep_movs: return "one instruction, but a load and a store for each 8 bytes";
    case Scheme::copy_engine: return "bulk instructions, retire when the copy is done (CopyEng)";
    case Scheme::dma: return "bulk, retire early; a dependent waits for the copy (0-DMA)";
    case Scheme::fast_bci: return "bulk, retire early; a dependent waits for its block (FastBCI)";
    case Scheme::perfect_granularity: return "as copy-engine (a limit of figure 2)";
    case Scheme::perfect_pipeline: return "as fast-bci, with an engine for each copy (a limit)";
    case Scheme::perfect_cache: break;
  }
  return "as that, and copies help caches and never harm (a limit)";
}

std::string_view what_is(Affinity affinity) {
  switch (affinity) {
    case Affinity::cacheable: return "cacheable: the side's blocks come into the caches";
    case Affinity::neutral: return "neutral: what is cached stays, nothing new comes in";
    case Affinity::non_cacheable: break;
  }
  return "non-cacheable: what is cached goes, nothing new comes in";
}

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
    text += fmt::format("\n  {:<20} {}", traits.name, what_is(traits.scheme));
  return text;
}

std::string help_of_affinities() {
  std::string text = "Affinities, of the source and of the destination, such as NEU_C:";
  for (const Affinity affinity : every_affinity)
    text += fmt::format("\n  {:<4} {}", name_of(affinity), what_is(affinity));
  return text;
}

}  // namespace bcisim::cli
