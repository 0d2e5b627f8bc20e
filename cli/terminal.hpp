// The terminal: colour, width, and a progress bar. In a pipe there is none of it.
#pragma once

#include <string>
#include <string_view>

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
