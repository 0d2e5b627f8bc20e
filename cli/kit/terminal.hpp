// The terminal: colour, width, and a progress bar. A pipe gets none of these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"

namespace haul::cli {

// Whether standard output takes colour: it is a terminal, NO_COLOR is unset or empty, TERM is not
// "dumb".
bool has_color();
std::string bold(std::string_view text);
std::string dim(std::string_view text);
std::string good(std::string_view text);  // green
std::string bad(std::string_view text);   // yellow

// What a line on standard error begins with: "haul: ", behind the level in systemd's notation where
// that is the journal.
std::string line_head(LogLevel level);

// Columns of the terminal; 100 in a pipe.
std::size_t width();

// Wraps words at the terminal's width and indents every line.
std::string wrapped(std::string_view text, std::size_t indent);

// A report's heading, and its lines "name  text", which are wrapped. A line without a name
// continues the one above.
void print_heading(std::string_view text);
void print_field(std::string_view name, std::string_view text);

// A page on standard output. On a terminal it is redrawn in place; in a pipe each page follows the
// last. It changes no mode of the terminal and moves only the cursor, which always rests below the
// page, so that the terminal is clean however the program ends.
class Screen {
 public:
  // Line `title` is a table's title and the next one its rule. Lines are cut to the terminal.
  void show(const std::vector<std::string>& lines, std::size_t title);

 private:
  std::size_t drawn_ = 0, width_ = 0;
};

// A bar on standard error while that is a terminal; removed at the end.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void show(double share, std::string_view step);

 private:
  std::string title_;
  bool visible_;
};

}  // namespace haul::cli
