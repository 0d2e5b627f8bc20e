// The environment variables of haul as the command shows them: the knob table, and what is set.
#pragma once

#include <string>
#include <vector>

#include "base/knobs.hpp"

namespace haul::cli {

// The table as a paragraph of --help.
std::string environment_help();

// The variable's value; "" if it is not set.
std::string variable(const char* name);

// A knob that is set to something other than its default.
struct SetKnob {
  const KnobRow* row;
  std::string text;
  std::string problem;  // why the text is unusable (the default holds), or ""
};
std::vector<SetKnob> set_knobs();

// HAUL_* variables that are no knob: most likely misspelt.
std::vector<std::string> unknown_knobs();

}  // namespace haul::cli
