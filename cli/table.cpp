// Aligning columns.
#include "cli/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal.hpp"

namespace haul::cli {

void Table::print() const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t wide = columns_[c].title.size();
    for (const auto& row : rows_) wide = std::max(wide, row[c].size());
    widths.push_back(wide);
  }
  auto line = [&](auto&& cell) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c != 0) text += "  ";
      text += columns_[c].align == Align::left ? fmt::format("{:<{}}", cell(c), widths[c])
                                               : fmt::format("{:>{}}", cell(c), widths[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  fmt::print("{}\n", bold(line([&](std::size_t c) { return columns_[c].title; })));
  fmt::print("{}\n", dim(line([&](std::size_t c) { return std::string(widths[c], '-'); })));
  for (const auto& row : rows_) fmt::print("{}\n", line([&](std::size_t c) { return row[c]; }));
}

}  // namespace haul::cli
