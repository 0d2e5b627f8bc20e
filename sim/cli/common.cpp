#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.hpp"
#include "format/error.hpp"

namespace bcisim::cli {

std::uint64_t parse_count(const std::string& text) {
  std::uint64_t value = 0, scale = 1;
  std::size_t at = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = value * 10 + static_cast<std::uint64_t>(text[at] - '0');
    if (value > 1'000'000'000'000'000) throw UsageError(fmt::format("'{}' is too much", text));
  }
  if (at != 0 && at + 1 == text.size()) {
    switch (text[at]) {
      case 'K':
      case 'k': scale = 1'000; break;
      case 'M':
      case 'm': scale = 1'000'000; break;
      case 'G':
      case 'g': scale = 1'000'000'000; break;
      default: scale = 0;
    }
    ++at;
  }
  if (at == 0 || at != text.size() || scale == 0 || value == 0) {
    throw UsageError(
        fmt::format("'{}' is no count; write a number from 1 on, such as 2000000 or 2M", text));
  }
  return value * scale;
}

void add_threads_option(CLI::App& command, unsigned& threads) {
  threads = std::max(1U, std::thread::hardware_concurrency());
  command
      .add_option("--threads", threads, "Threads that simulate (default: one for each processor)")
      ->check(CLI::Range(1U, 1024U))
      ->type_name("N");
}

void add_instructions_option(CLI::App& command, std::uint64_t& instructions) {
  command
      .add_option_function<std::string>(
          "--instructions",
          [&instructions](const std::string& text) { instructions = parse_count(text); },
          "How much of each trace, such as 5M (default: all)")
      ->type_name("N");
}

Progress::Progress(std::string what)
    : what_(std::move(what)), is_terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::clear() {
  if (shown_percent_ >= 0) fmt::print(stderr, "\r\033[K");
  shown_percent_ = -1;
}

void Progress::show(double done) {
  if (!is_terminal_) return;
  constexpr int width = 40;
  const int percent = static_cast<int>(done * 100);
  if (percent == shown_percent_) return;
  shown_percent_ = percent;
  const int filled = percent * width / 100;
  fmt::print(stderr, "\r{} [{:=<{}}{:<{}}] {:3} %", what_, "", filled, "", width - filled, percent);
}

void write_file(const std::string& path, const std::string& text) {
  // What is no regular file, such as /dev/stdout, is written to: a rename would replace it.
  std::error_code unknown;
  const auto type = std::filesystem::symlink_status(path, unknown).type();
  const bool replaces =
      type == std::filesystem::file_type::not_found ||
      type == std::filesystem::file_type::regular ||
      type == std::filesystem::file_type::directory;  // rename() says what is wrong
  const std::string temporary = replaces ? fmt::format("{}.{}.tmp", path, getpid()) : path;
  const auto fail = [&temporary, &path, replaces](int error) {
    if (replaces) std::remove(temporary.c_str());
    throw std::runtime_error(
        fmt::format("cannot write {}: {}; choose a folder that exists, can be written "
                    "to and has room",
                    path, std::strerror(error)));
  };
  std::FILE* const file = std::fopen(temporary.c_str(), "w");
  if (file == nullptr) fail(errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int error = errno;
  if (std::fclose(file) != 0 || !written) fail(written ? errno : error);
  if (replaces && std::rename(temporary.c_str(), path.c_str()) != 0) fail(errno);
}

std::string text_of(const nlohmann::json& document) {
  // File names need not be UTF-8.
  return document.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

void JsonOption::add_to(CLI::App& command) {
  command
      .add_option("--json", path_,
                  "Write the results to a file, too; -: to standard output, instead of the text")
      ->type_name("FILE");
}

void JsonOption::write(const nlohmann::json& document) const {
  if (path_.empty()) return;
  if (takes_place_of_text()) {
    fmt::print("{}", text_of(document));
  } else {
    write_file(path_, text_of(document));
  }
}

std::string place_of(const ProfiledSite& site) {
  return site.name.empty() ? fmt::format("{:#x}", site.address) : site.name;
}

void refuse_pipes(const std::vector<std::string>& traces) {
  for (const std::string& trace : traces) {
    std::error_code unknown;
    const auto status = std::filesystem::status(trace, unknown);
    // What is not there, and folders, are refused where they are read.
    if (std::filesystem::is_other(status)) {
      throw TraceError(trace +
                       ": cannot be read (it is a pipe or a device, and a trace is read more than "
                       "once); write it to a file");
    }
  }
}

}  // namespace bcisim::cli
