// A table: titles, a rule, aligned columns.
#pragma once

#include <string>
#include <vector>

namespace haul::cli {

enum class Align { left, right };

class TextTable {
 public:
  struct Column {
    std::string title;
    Align align;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void print() const;  // to standard output
  // Titles, rule and rows as plain text, for callers that cut them to the screen.
  std::vector<std::string> lines() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace haul::cli
