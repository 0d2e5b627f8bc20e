// Terminals and pipes.
#include "cli/kit/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace haul::cli {
namespace {

std::string painted(const char* code, std::string_view text) {
  return has_color() ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
}

winsize size_of(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

std::size_t columns_of(int descriptor) {
  return size_of(descriptor).ws_col;
}

// Whether what was printed can still be overwritten.
bool can_redraw() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

}  // namespace

bool has_color() {
  static const bool color = [] {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0') &&
           term != nullptr && std::strcmp(term, "dumb") != 0;
  }();
  return color;
}

std::string bold(std::string_view text) {
  return painted("1", text);
}
std::string dim(std::string_view text) {
  return painted("2", text);
}
std::string good(std::string_view text) {
  return painted("32", text);
}
std::string bad(std::string_view text) {
  return painted("33", text);
}

std::string line_head(LogLevel level) {
  // Numbers of syslog(3): error, warning, info, debug.
  constexpr const char* levels[] = {"<3>", "<4>", "<6>", "<7>"};
  // Of the stream that systemd has made; this process's may be another by now.
  const char* journal = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  const bool in_journal = journal != nullptr && fstat(STDERR_FILENO, &status) == 0 &&
                          fmt::format("{}:{}", status.st_dev, status.st_ino) == journal;
  return fmt::format("{}haul: ", in_journal ? levels[static_cast<int>(level)] : "");
}

std::size_t width() {
  std::size_t columns = isatty(STDOUT_FILENO) != 0 ? columns_of(STDOUT_FILENO) : 0;
  return columns >= 40 ? columns : 100;
}

std::string wrapped(std::string_view text, std::size_t indent) {
  const std::string margin(indent, ' ');
  const std::size_t room = std::max<std::size_t>(width(), indent + 30) - indent;
  std::string all, line;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find(' ', at), text.size());
    std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!line.empty() && line.size() + 1 + word.size() > room) {
      all += margin + line + "\n";
      line.clear();
    }
    line += line.empty() ? "" : " ";
    line += word;
  }
  return all + margin + line + "\n";
}

void print_heading(std::string_view text) {
  fmt::print("\n{}\n", bold(text));
}

void print_field(std::string_view name, std::string_view text) {
  constexpr std::size_t indent = 16;
  fmt::print("  {:<13} {}", name, wrapped(text, indent).substr(indent));
}

void Screen::show(const std::vector<std::string>& lines, std::size_t title) {
  const bool redraw = can_redraw();
  const winsize size = redraw ? size_of(STDOUT_FILENO) : winsize{};
  const std::size_t columns = size.ws_col > 1 ? size.ws_col - 1 : ~std::size_t{0};
  std::size_t count = lines.size();
  // A line that has scrolled out at the top can no longer be overwritten.
  if (size.ws_row > 1) count = std::min<std::size_t>(count, size.ws_row - 1u);
  std::string page;
  if (redraw && drawn_ != 0) {
    // The terminal's width has changed and its lines were wrapped again, so nobody knows where they
    // are.
    page += width_ == columns ? fmt::format("\033[{}F", drawn_) : "\033[H\033[2J";
  } else if (drawn_ != 0) {
    page += "\n";
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = lines[i].substr(0, columns);
    page += i == title ? bold(text) : i == title + 1 ? dim(text) : text;
    page += redraw ? "\033[K\n" : "\n";
  }
  if (redraw) page += "\033[J";
  fmt::print("{}", page);
  std::fflush(stdout);
  drawn_ = count;
  width_ = columns;
}

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)), visible_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (visible_) fmt::print(stderr, "\r\033[K");
}

void ProgressBar::show(double share, std::string_view step) {
  if (!visible_) return;
  constexpr std::size_t cells = 24;
  auto full = static_cast<std::size_t>(std::lround(std::clamp(share, 0.0, 1.0) * cells));
  std::string line = fmt::format("{} [{}{}] {:3.0f} % {}", title_, std::string(full, '#'),
                                 std::string(cells - full, '.'), share * 100, step);
  std::size_t columns = columns_of(STDERR_FILENO);
  if (columns > 1 && line.size() >= columns) line.resize(columns - 1);
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

}  // namespace haul::cli
