// haul bench: runs suites and shows their rows: a table for people, a document for programs.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "bench/buffer.hpp"
#include "bench/failure.hpp"
#include "bench/processes.hpp"
#include "bench/suite.hpp"
#include "bench/units.hpp"
#include "cli/calibration_files.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "cli/tree.hpp"

namespace haul::cli {
namespace {

struct Choices {
  std::string suite, json;
  std::vector<std::string> sizes;
  bool quick = false;
  std::string memory = "private";
};

std::string cell(const bench::Row& row, const bench::Column& column) {
  auto found = row.find(column.field);
  if (found == row.end() || found->is_null()) return "-";
  switch (column.unit) {
    case bench::Unit::text: return found->get<std::string>();
    case bench::Unit::bytes: return bench::show_bytes(found->get<std::uint64_t>());
    case bench::Unit::ns: return bench::show_ns(found->get<double>());
    case bench::Unit::ratio: return fmt::format("{:.2f}", found->get<double>());
    case bench::Unit::gbps: return fmt::format("{:.1f} GB/s", found->get<double>());
    case bench::Unit::count: return fmt::format("{}", found->get<std::uint64_t>());
  }
  return "";
}

void print_result(const bench::Result& result) {
  fmt::print("{}: {}\n", bold(result.suite->name), result.suite->help);
  std::vector<Table::Column> columns;
  for (const bench::Column& column : result.suite->columns) {
    bool text = column.unit == bench::Unit::text;
    columns.push_back({column.title, text ? Table::Align::left : Table::Align::right});
  }
  Table table(columns);
  for (const bench::Row& row : result.rows) {
    std::vector<std::string> cells;
    for (const bench::Column& column : result.suite->columns) cells.push_back(cell(row, column));
    table.add(cells);
  }
  table.print();
  if (result.suite->needs_distance && result.distance.before_ns > 0) {
    fmt::print("{}\n", dim(fmt::format(
                           "the cores were {}: a line's round trip took {} before, {} after",
                           result.distance.placement(), bench::show_ns(result.distance.before_ns),
                           bench::show_ns(result.distance.after_ns))));
  }
  std::fflush(stdout);
}

void run(const Choices& choices) {
  check_writable(choices.json);
  std::vector<const bench::Suite*> wanted;
  for (const bench::Suite& suite : bench::suites()) {
    if (choices.suite == "all" || choices.suite == suite.name) wanted.push_back(&suite);
  }
  bench::Options options;
  options.quick = choices.quick;
  for (const std::string& size : choices.sizes) options.sizes.push_back(to_bytes(size));
  if (calibration_files().empty()) {
    fmt::print(stderr,
               "haul: note: not calibrated yet, so defaults plan the copies; `haul tune` first "
               "gives the better figures\n");
  }
  bench::use_memory(choices.memory == "shared" ? bench::Memory::shared : bench::Memory::private_);
  bool tables = choices.json != "-";
  bench::Stage stage;
  std::vector<bench::Result> results;
  for (const bench::Suite* suite : wanted) {
    {
      ProgressBar bar(suite->name);
      options.progress = [&bar](double share, const std::string& step) { bar.show(share, step); };
      results.push_back(bench::run_suite(*suite, stage, options));
    }
    if (tables && suite != wanted.front()) fmt::print("\n");
    if (tables) print_result(results.back());
  }
  if (!choices.json.empty()) {
    write_document(choices.json, bench::document(choices.suite, results, stage));
  }
}

}  // namespace

void add_bench(Tree& tree) {
  std::vector<std::string> names;
  std::string text =
      "Measures haul against glibc's memcpy, side by side in one process; every row's bytes are "
      "checked. "
      "Figures are medians; ratios are medians of pairs, with their 25th and 75th percentiles. "
      "The suites are:";
  for (const bench::Suite& suite : bench::suites()) {
    names.emplace_back(suite.name);
    text += fmt::format("\n{}: {}.", suite.name, suite.help);
  }
  names.emplace_back("all");
  text += "\nall: each of them in turn.";
  CLI::App& app = tree.command("bench", "Measure haul against memcpy on this machine", text);
  auto choices = std::make_shared<Choices>();
  tree.choice(app, "suite", choices->suite, names, "Which suite to run")->required();
  app.add_option("--json", choices->json,
                 "Also write one JSON document ('-': only that, to stdout)")
      ->type_name("FILE");
  app.add_flag("--quick", choices->quick, "Fewer repetitions: rough figures in seconds");
  app.add_option("--sizes", choices->sizes, "Sizes to measure, such as 4K,64K,1M")
      ->type_name("BYTES,...")
      ->delimiter(',')
      ->check(check_bytes, "");
  tree.choice(app, "--memory", choices->memory, {"private", "shared"},
              "Buffers of this process alone, or of haul_alloc(), which the node's service maps");
  app.callback([choices] { run(*choices); });
}

void add_bench_worker(Tree& tree) {
  CLI::App& app = tree.command("bench-worker", "A process that takes part in a measurement", "");
  app.group("");  // not for people
  struct Worker {
    std::string role;
    unsigned index = 0;
    int block_fd = -1;
  };
  auto worker = std::make_shared<Worker>();
  app.add_option("role", worker->role)->required();
  app.add_option("index", worker->index)->required();
  app.add_option("block", worker->block_fd)->required();
  app.callback([worker] { bench::run_worker(worker->role, worker->index, worker->block_fd); });
}

}  // namespace haul::cli
