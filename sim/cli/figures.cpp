// bcisim figures: paper 003's figures as data and as plots.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "study/figures.hpp"

extern char** environ;

namespace bcisim::cli {
namespace {

struct FiguresArguments {
  std::string traces, out = "figures";
  bool no_plots = false;
  FigureOptions figures;
};

std::string cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != 0)
    return cache;
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : ".") + "/.cache";
}

// Short traces and the plotting script, which lie beside the command: installed, and by links in
// the build tree.
std::filesystem::path data_folder() {
  std::error_code unknown;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return (self.parent_path() / BCISIM_DATA).lexically_normal();
}

// The full traces where they have been made, else the short ones.
std::string default_traces() {
  std::string full = cache_folder() + "/haul/traces";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(full, error)) {
    if (entry.path().extension() == ".trace") return full;
  }
  return data_folder() / "traces";
}

nlohmann::json json_of(const std::vector<std::optional<double>>& values) {
  nlohmann::json array = nlohmann::json::array();
  for (const auto& value : values)
    array.push_back(value ? nlohmann::json(*value) : nlohmann::json());
  return array;
}

nlohmann::json json_of(const std::vector<Workload>& workloads, const std::vector<Figure>& figures) {
  nlohmann::json document;
  for (const Workload& workload : workloads) {
    document["traces"].push_back(
        {{"workload", workload.name},
         {"file", std::filesystem::path(workload.trace).filename().string()},
         {"instructions", workload.instructions}});
  }
  for (const Figure& figure : figures) {
    nlohmann::json one{{"id", figure.id},
                       {"title", figure.title},
                       {"unit", figure.unit},
                       {"drawing", figure.drawing == Drawing::bars      ? "bars"
                                   : figure.drawing == Drawing::stacked ? "stacked"
                                                                        : "table"},
                       {"categories", figure.categories}};
    for (const Series& series : figure.series) {
      one["series"].push_back({{"name", series.name},
                               {"values", json_of(series.values)},
                               {"paper", json_of(series.paper)}});
    }
    document["figures"].push_back(std::move(one));
  }
  return document;
}

// A text field as RFC 4180 has it.
std::string csv_of(const std::string& text) {
  std::string field = "\"";
  for (const char one : text) field += one == '"' ? "\"\"" : std::string(1, one);
  return field + "\"";
}

std::string csv_of(const Figure& figure) {
  std::string text = "category,series,value,paper\n";
  for (const Series& series : figure.series) {
    for (std::size_t i = 0; i < figure.categories.size(); ++i) {
      const auto field = [&](const std::vector<std::optional<double>>& values) {
        return values[i] ? fmt::format("{:.3f}", *values[i]) : std::string();
      };
      text += fmt::format("{},{},{},{}\n", csv_of(figure.categories[i]), csv_of(series.name),
                          field(series.values), field(series.paper));
    }
  }
  return text;
}

std::vector<std::vector<std::string>> transposed(
    const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> columns(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].push_back(row[i]);
  }
  return columns;
}

void print(const Figure& figure) {
  const bool is_paper_figure = figure.id[0] >= '0' && figure.id[0] <= '9';
  fmt::print("\n{}{}{}\n", is_paper_figure ? fmt::format("Figure {}: ", figure.id) : "",
             figure.title, figure.unit.empty() ? "" : fmt::format(" ({})", figure.unit));
  const auto cell = [](const Series& series, std::size_t i) {
    std::string text = series.values[i] ? fmt::format("{:.1f}", *series.values[i]) : "-";
    if (series.paper[i]) text += fmt::format(" (paper {:g})", *series.paper[i]);
    return text;
  };
  // Series with units of their own have long names: rows.
  const bool is_table = figure.drawing == Drawing::table;
  std::vector<std::vector<std::string>> rows(1 + figure.categories.size());
  rows[0].emplace_back();
  for (std::size_t i = 0; i < figure.categories.size(); ++i)
    rows[1 + i].push_back(figure.categories[i]);
  for (const Series& series : figure.series) {
    rows[0].push_back(series.name);
    for (std::size_t i = 0; i < figure.categories.size(); ++i)
      rows[1 + i].push_back(cell(series, i));
  }
  if (is_table) rows = transposed(rows);
  Table table(rows[0]);
  for (std::size_t i = 1; i < rows.size(); ++i) table.add(rows[i]);
  table.print();
}

// Whether it went well.
bool run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0)
    return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void plot(const std::string& out) {
  // Debian's own Python has the packaged matplotlib; another that comes first in PATH may not.
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (run_program({python, "-c",
                     "import sys, importlib.util as u; "
                     "sys.exit(u.find_spec('matplotlib') is None)"})) {
      if (run_program({python, data_folder() / "plot.py", out})) return;
      throw std::runtime_error("plotting failed, see above; the figures' data are in " + out);
    }
  }
  fmt::print(stderr, "bcisim: no plots, for want of matplotlib; install python3-matplotlib\n");
}

void figures(const FiguresArguments& options) {
  const std::string folder = options.traces.empty() ? default_traces() : options.traces;
  const std::vector<Workload> workloads = workloads_of(folder);
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error) {
    throw std::runtime_error(fmt::format("cannot make the folder {}: {}; choose another with --out",
                                         options.out, error.message()));
  }
  FigureOptions wanted = options.figures;
  const auto [all, seconds] =
      with_progress(wanted.simulation, [&](const SimulationOptions& simulation) {
        wanted.simulation = simulation;
        return make_figures(workloads, wanted);
      });
  write_file(options.out + "/figures.json", text_of(json_of(workloads, all)));
  for (const Figure& figure : all) {
    write_file(options.out + "/figure-" + figure.id + ".csv", csv_of(figure));
    print(figure);
  }
  if (!options.no_plots) plot(options.out);
  fmt::print("\n{} traces of {}, {:.0f} s on {} threads; data and plots are in {}\n",
             workloads.size(), printable(folder), seconds, wanted.simulation.threads,
             printable(options.out));
}

}  // namespace

void add_figures(CLI::App& root) {
  CLI::App* const command = root.add_subcommand(
      "figures", "Make paper 003's figures 2, 4, 9, 10 and 11, and sensitivities");
  const auto options = std::make_shared<FiguresArguments>();
  command->add_option(
      "--traces", options->traces,
      "Folder of traces (default: those of `make -C sim traces` if made, else the short ones)");
  command->add_option("--out", options->out, "Folder for data and plots, made if need be")
      ->capture_default_str();
  command->add_flag("--no-plots", options->no_plots, "Data alone");
  add_count_option(
      *command, "--sensitivity-instructions", options->figures.sensitivity_instructions,
      "How much of each trace for the sensitivities, after as much that only warms the "
      "caches (default: 2500K)");
  add_simulation_options(*command, options->figures.simulation);
  command->callback([options] { figures(*options); });
}

}  // namespace bcisim::cli
