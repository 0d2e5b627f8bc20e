// The environment variables of haul as the command shows them: the knob table, and what is set.
#pragma once

#include <string>
#include <vector>

#include "base/knobs.hpp"

namespace haul::cli {

// The table as a paragraph of --help.
std::string environment_help();

// A knob that is set to something else than its default.
struct SetKnob {
  const KnobRow* row;
  std::string text;
  std::string problem;  // why the text is unusable (the default holds), or ""
};
std::vector<SetKnob> set_knobs();

// HAUL_* variables that no row knows: most likely a typing error.
std::vector<std::string> unknown_knobs();

}  // namespace haul::cli
