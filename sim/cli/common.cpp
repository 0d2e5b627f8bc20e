#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/commands.hpp"
#include "format/error.hpp"

namespace bcisim::cli {

namespace {

// The number that a text begins with, the largest there is where it is larger, and the factor of
// its suffix: the first letter stands for `base`, each further one for `base` times the one before.
// A factor of 0: the text is no number with such a suffix.
struct Quantity {
  std::uint64_t number = 0, factor = 0;
};

Quantity quantity_of(const std::string& text, std::string_view letters, std::uint64_t base) {
  Quantity found;
  const char *const begin = text.data(), *const end = begin + text.size();
  const auto [behind, error] = std::from_chars(begin, end, found.number);
  if (error == std::errc::result_out_of_range) found.number = ~std::uint64_t{0};
  if (behind == begin) return found;
  if (behind == end) found.factor = 1;
  std::uint64_t factor = 1;
  for (const char letter : letters) {
    factor *= base;
    if (behind + 1 == end && std::toupper(static_cast<unsigned char>(*behind)) == letter)
      found.factor = factor;
  }
  return found;
}

std::uint64_t parse_count(const std::string& text) {
  const Quantity count = quantity_of(text, "KMG", 1000);
  if (count.number > 1'000'000'000'000'000) throw UsageError(fmt::format("'{}' is too much", text));
  if (count.number == 0 || count.factor == 0) {
    throw UsageError(
        fmt::format("'{}' is no count; write a number from 1 on, such as 2000000 or 2M", text));
  }
  return count.number * count.factor;
}

}  // namespace

std::uint64_t parse_bytes(const std::string& text) {
  const Quantity bytes = quantity_of(text, "KM", 1024);
  if (bytes.factor == 0 || bytes.number > std::uint64_t{1} << 40)
    throw UsageError(fmt::format("'{}' is no size; write bytes, such as 32K or 1M", text));
  return bytes.number * bytes.factor;
}

CLI::Option* add_count_option(CLI::App& command, const char* name, std::uint64_t& value,
                              const char* what) {
  return command
      .add_option_function<std::string>(
          name, [&value](const std::string& text) { value = parse_count(text); }, what)
      ->type_name("N");
}

void add_level_option(CLI::App& command, int& level) {
  command.add_option("--level", level, "Of compression, 1 to 22")
      ->check(CLI::Range(1, 22))
      ->capture_default_str();
}

void add_simulation_options(CLI::App& command, SimulationOptions& options) {
  options.threads = std::max(1U, std::thread::hardware_concurrency());
  command
      .add_option("--threads", options.threads,
                  "Threads that simulate (default: one for each processor)")
      ->check(CLI::Range(1U, 1024U))
      ->type_name("N");
  add_count_option(command, "--instructions", options.instructions,
                   "How much of each trace, such as 5M (default: all)");
}

Progress::Progress() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_percent_ >= 0) fmt::print(stderr, "\r\033[K");
}

void Progress::show(double done) {
  if (!is_terminal_) return;
  constexpr int width = 40;
  const int percent = static_cast<int>(done * 100);
  if (percent == shown_percent_) return;
  shown_percent_ = percent;
  const int filled = percent * width / 100;
  fmt::print(stderr, "\rsimulating [{:=<{}}{:<{}}] {:3} %", "", filled, "", width - filled,
             percent);
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
