// The commands of bcisim, each in a file of its own, and what they share.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/parameters.hpp"
#include "study/profile.hpp"
#include "study/simulation.hpp"

namespace bcisim::cli {

// Throw it for what the user asked wrongly; exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void add_info(CLI::App& root);
void add_run(CLI::App& root);
void add_compare(CLI::App& root);
void add_figures(CLI::App& root);
void add_advise(CLI::App& root);
void add_convert(CLI::App& root);
void add_cut(CLI::App& root);

// --rob, --l2 and the others, into `parameters`, which must live as long as the command.
void add_machine_options(CLI::App& command, Parameters& parameters);
// Throws UsageError if they cannot be.
void check_machine(const Parameters& parameters);
// --threads, --instructions.
void add_simulation_options(CLI::App& command, SimulationOptions& options);
// A count with a decimal suffix, K, M or G ("100M"), into `value`.
CLI::Option* add_count_option(CLI::App& command, const char* name, std::uint64_t& value,
                              const char* what);
// --level, of zstd.
void add_level_option(CLI::App& command, int& level);
// Bytes with a binary suffix, K or M. Throws UsageError.
std::uint64_t parse_bytes(const std::string& text);

// A bar on a terminal, silence elsewhere; gone when it is destroyed.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(double done);  // 0 to 1

 private:
  bool is_terminal_;
  int shown_percent_ = -1;
};

// Calls run(options) under a bar that shows its progress. Returns what it returned, and the seconds
// that it took.
template <class Run>
auto with_progress(SimulationOptions options, Run&& run) {
  Progress bar;
  options.progress = [&bar](double done) { bar.show(done); };
  const auto started = std::chrono::steady_clock::now();
  auto result = run(options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  return std::pair{std::move(result), took.count()};
}

// Writes the whole file or none: to a temporary name, renamed; what is no regular file is written
// to as it is. Throws std::runtime_error.
void write_file(const std::string& path, const std::string& text);
// A document as a file holds it: ASCII alone, so that it may be shown on a terminal.
std::string text_of(const nlohmann::json& document);

// --json FILE, of a command that prints text; "-" puts the document in the text's place.
class JsonOption {
 public:
  void add_to(CLI::App& command);
  bool takes_place_of_text() const { return path_ == "-"; }
  // Nothing, where it was not asked for. Throws std::runtime_error.
  void write(const nlohmann::json& document) const;

 private:
  std::string path_;
};

// The name of a place that copies, its address where it has none.
std::string place_of(const ProfiledSite& site);

// Throws TraceError where a trace is a pipe or a device: most commands read one more than once.
void refuse_pipes(const std::vector<std::string>& traces);

}  // namespace bcisim::cli
