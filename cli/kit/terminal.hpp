// The terminal: colour, width, and a progress bar. In a pipe there is none of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace haul::cli {

// For standard output: a terminal, NO_COLOR unset or empty, TERM not "dumb".
bool has_color();
std::string bold(std::string_view text);
std::string dim(std::string_view text);
std::string good(std::string_view text);  // green
std::string bad(std::string_view text);   // yellow

// Columns of the terminal; 100 in a pipe.
std::size_t width();

// Words wrapped at the width, every line indented.
std::string wrapped(std::string_view text, std::size_t indent);

// A page on standard output that is drawn anew in place while a terminal watches, and appended in a
// pipe. It changes no mode of the terminal and moves nothing but the cursor, which always rests
// below the page: whatever ends the program leaves a clean terminal.
class Screen {
 public:
  // The first of lines below `title` is a table's title, the next its rule. Cut to the terminal.
  void show(const std::vector<std::string>& lines, std::size_t title);

 private:
  std::size_t drawn_ = 0, width_ = 0;
};

// A bar on standard error while a terminal watches; removed at the end.
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
