// Aligning columns.
#include "cli/kit/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/kit/terminal.hpp"

namespace haul::cli {

std::vector<std::string> TextTable::lines() const {
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
  std::vector<std::string> all;
  all.push_back(line([&](std::size_t c) { return columns_[c].title; }));
  all.push_back(line([&](std::size_t c) { return std::string(widths[c], '-'); }));
  for (const auto& row : rows_) all.push_back(line([&](std::size_t c) { return row[c]; }));
  return all;
}

void TextTable::print() const {
  const std::vector<std::string> all = lines();
  fmt::print("{}\n{}\n", bold(all[0]), dim(all[1]));
  for (std::size_t i = 2; i < all.size(); ++i) fmt::print("{}\n", all[i]);
}

}  // namespace haul::cli
