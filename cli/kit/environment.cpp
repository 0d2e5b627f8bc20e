// Knobs for people.
#include "cli/kit/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "cli/kit/terminal.hpp"

extern char** environ;

namespace haul::cli {

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}
namespace {

constexpr auto knob_count = static_cast<std::size_t>(Knob::count_);

}  // namespace

std::string environment_help() {
  // Each row's sentence already names the range and the default.
  std::size_t longest = 0;
  for (std::size_t i = 0; i < knob_count; ++i) {
    longest = std::max(longest, std::strlen(knob_rows()[i].variable));
  }
  const std::size_t indent = longest + 4;
  std::string text = "Environment:\n";
  auto add = [&](std::string_view variable, std::string_view help) {
    std::string lines = wrapped(help, indent);
    text += fmt::format("  {:<{}}{}", variable, indent - 2, lines.substr(indent));
  };
  for (std::size_t i = 0; i < knob_count; ++i) add(knob_rows()[i].variable, knob_rows()[i].help);
  add("NO_COLOR", "No colour, even on a terminal.");
  text.pop_back();
  return text;
}

std::vector<SetKnob> set_knobs() {
  std::vector<SetKnob> found;
  for (std::size_t i = 0; i < knob_count; ++i) {
    const KnobRow& row = knob_rows()[i];
    const char* text = std::getenv(row.variable);
    if (text == nullptr || std::strcmp(text, row.default_text) == 0) continue;
    Expected<std::uint64_t> parsed = parse_knob(row, text);
    found.push_back({&row, text, parsed ? "" : parsed.error().sentence});
  }
  return found;
}

std::vector<std::string> unknown_knobs() {
  std::vector<std::string> unknown;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string name(*entry, std::strcspn(*entry, "="));
    if (!name.starts_with("HAUL_")) continue;
    bool known = name == "HAUL_NO_INSTALL";  // a variable of `make run`
    for (std::size_t i = 0; i < knob_count; ++i) known = known || name == knob_rows()[i].variable;
    if (!known) unknown.push_back(name);
  }
  return unknown;
}

}  // namespace haul::cli
