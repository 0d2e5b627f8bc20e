// haul bench: runs suites and shows their rows: a table for people, a document for programs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "bench/copy/schemes/schemes.hpp"
#include "bench/kit/buffer.hpp"
#include "bench/kit/processes.hpp"
#include "bench/kit/suite.hpp"
#include "bench/messages/mpi_messages.hpp"
#include "cli/kit/calibration_files.hpp"
#include "cli/kit/document.hpp"
#include "cli/kit/table.hpp"
#include "cli/kit/terminal.hpp"
#include "cli/kit/tree.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

struct BenchChoices {
  std::string suite, json;
  std::vector<std::string> sizes;
  bool quick = false;
  std::string memory = "private";
  bench::MpiChoice mpi;
  std::vector<std::string> engines, registrations;
};

std::string show_rate(double gbps) {
  return gbps < 0.1 ? fmt::format("{:.2g} GB/s", gbps) : fmt::format("{:.1f} GB/s", gbps);
}

std::string cell(const bench::Row& row, const bench::Column& column) {
  auto found = row.find(column.field);
  if (found == row.end() || found->is_null()) return "-";
  switch (column.unit) {
    case bench::Unit::text: return found->get<std::string>();
    case bench::Unit::bytes: return tools::show_bytes(found->get<std::uint64_t>());
    case bench::Unit::ns: return tools::show_ns(found->get<double>());
    case bench::Unit::us: return tools::show_ns(found->get<double>() * 1e3);
    case bench::Unit::seconds: return tools::show_ns(found->get<double>() * 1e9);
    case bench::Unit::ratio: return fmt::format("{:.2f}", found->get<double>());
    case bench::Unit::gbps: return show_rate(found->get<double>());
    case bench::Unit::count: return fmt::format("{}", found->get<std::uint64_t>());
  }
  return "";
}

void print_result(const bench::Result& result) {
  fmt::print("{}: {}\n", bold(result.suite->name), result.suite->help);
  std::vector<TextTable::Column> columns;
  for (const bench::Column& column : result.columns) {
    bool text = column.unit == bench::Unit::text;
    columns.push_back({column.title, text ? Align::left : Align::right});
  }
  TextTable table(columns);
  for (const bench::Row& row : result.rows) {
    std::vector<std::string> cells;
    for (const bench::Column& column : result.columns) cells.push_back(cell(row, column));
    table.add(cells);
  }
  table.print();
  if (result.suite->needs_distance && result.distance.before_ns > 0) {
    fmt::print("{}\n", dim(fmt::format(
                           "the cores were {}: a line's round trip took {} before, {} after",
                           result.distance.placement(), tools::show_ns(result.distance.before_ns),
                           tools::show_ns(result.distance.after_ns))));
  }
  std::fflush(stdout);
}

std::vector<const bench::Suite*> wanted_suites(const std::string& name) {
  std::vector<const bench::Suite*> wanted;
  // Many suites share one reason, and finding it out may take a second.
  std::map<std::string (*)(), std::string> reasons;
  std::map<std::string, std::vector<std::string>> left_out;
  for (const bench::Suite* suite : bench::suites()) {
    if (name != suite->name && name != "all") continue;
    std::string reason;
    if (name == "all" && suite->why_not != nullptr) {
      if (!reasons.contains(suite->why_not)) reasons[suite->why_not] = suite->why_not();
      reason = reasons[suite->why_not];
    }
    if (reason.empty()) {
      wanted.push_back(suite);
    } else {
      left_out[reason].emplace_back(suite->name);
    }
  }
  for (const auto& [reason, names] : left_out)
    fmt::print(stderr, "haul: note: {} left out: {}\n", fmt::join(names, ", "), reason);
  return wanted;
}

const std::vector<std::string> bench_registrations = {"cached", "overlapped", "blocking"};

std::vector<std::string> bench_engine_names() {
  std::vector<std::string> names;
  haul_engine_info engine{};
  engine.size = sizeof engine;
  for (unsigned i = 0; haul_engine(i, &engine) == 0; ++i) names.emplace_back(engine.name);
  names.emplace_back("all");
  return names;
}

// --engine and --registration choose among what some suites alone measure.
void choose_engines(const BenchChoices& choices, const std::vector<const bench::Suite*>& suites,
                    bench::SuiteOptions& options) {
  if (choices.engines.empty()) {
    if (!choices.registrations.empty())
      throw UsageError("--registration says how memory is registered for engines; add --engine");
    return;
  }
  const auto by_scheme = [](const bench::Suite* suite) { return suite->by_scheme; };
  if (std::none_of(suites.begin(), suites.end(), by_scheme)) {
    std::vector<std::string> names;
    for (const bench::Suite* suite : bench::suites())
      if (suite->by_scheme) names.emplace_back(suite->name);
    throw UsageError(fmt::format("{} does not compare engines; --engine is for {}", choices.suite,
                                 fmt::join(names, ", ")));
  }
  std::vector<std::string> asked = choices.registrations;
  if (asked.empty()) asked = {bench_registrations.front()};
  if (std::find(asked.begin(), asked.end(), "all") != asked.end()) asked = bench_registrations;
  options.schemes = bench::schemes_of(choices.engines, asked);
}

// What --test may name: the tests of all suites.
std::vector<std::string> bench_test_names() {
  std::vector<std::string> names;
  for (const bench::Suite* suite : bench::suites()) {
    if (suite->tests == nullptr) continue;
    for (const std::string& name : suite->tests())
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

void check_tests(const BenchChoices& choices, const bench::Suite& suite) {
  if (choices.mpi.tests.empty()) return;
  if (suite.tests == nullptr)
    throw UsageError(fmt::format("{} has no tests to choose from; leave --test out", suite.name));
  const std::vector<std::string>& known = suite.tests();
  for (const std::string& test : choices.mpi.tests) {
    if (std::find(known.begin(), known.end(), test) == known.end())
      throw UsageError(fmt::format("{} has no test {}; --test takes {}", suite.name, test,
                                   fmt::join(known, ", ")));
  }
}

void run(const BenchChoices& choices) {
  check_writable(choices.json);
  const std::vector<const bench::Suite*> wanted = wanted_suites(choices.suite);
  if (choices.suite != "all") check_tests(choices, *wanted.front());
  bench::SuiteOptions options;
  options.quick = choices.quick;
  options.mpi = choices.mpi;
  choose_engines(choices, wanted, options);
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
    std::vector<std::string> notes;
    options.note = [&notes](const std::string& sentence) {
      if (std::find(notes.begin(), notes.end(), sentence) == notes.end()) notes.push_back(sentence);
    };
    {
      ProgressBar bar(suite->name);
      options.progress = [&bar](double share, const std::string& step) { bar.show(share, step); };
      results.push_back(bench::run_suite(*suite, stage, options));
    }
    for (const std::string& note : notes) fmt::print(stderr, "haul: note: {}\n", note);
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
      "Measures haul against glibc's memcpy, side by side in one process, and as a transport of "
      "MPIs against their own; every row's bytes are checked. "
      "Figures are medians; ratios are medians of pairs, with their 25th and 75th percentiles. "
      "The suites are:";
  for (const bench::Suite* suite : bench::suites()) {
    names.emplace_back(suite->name);
    text += fmt::format("\n{}: {}.", suite->name, suite->help);
  }
  names.emplace_back("all");
  text += "\nall: each of them in turn.";
  CLI::App& app = tree.command("bench", "Measure haul against memcpy on this machine", text);
  auto choices = std::make_shared<BenchChoices>();
  tree.choice(app, "suite", choices->suite, names, "Which suite to run")->required();
  app.add_option("--json", choices->json,
                 "Also write one JSON document ('-': only that, to stdout)")
      ->type_name("FILE");
  app.add_flag("--quick", choices->quick, "Fewer repetitions: rough figures in seconds");
  app.add_option("--sizes", choices->sizes, "Sizes to measure, such as 4K,64K,1M")
      ->type_name("BYTES,...")
      ->delimiter(',')
      ->check(check_bytes, "");
  tree.choice(
      app, "--memory", choices->memory, {"private", "shared"},
      "Buffers of this process alone, or of haul_alloc(), which the node's service maps; the "
      "suites with MPI: shared adds haul with large allocations born shared");
  tree.choices(app, "--engine", choices->engines, bench_engine_names(),
               "latency, bandwidth, hide, split, receive-overhead, mpi-schemes: the schemes of "
               "paper 000 by which engines (all: the CPU and every device that opens here)");
  std::vector<std::string> known_registrations = bench_registrations;
  known_registrations.emplace_back("all");
  tree.choices(app, "--registration", choices->registrations, known_registrations,
               "With --engine: how memory is registered with engines that need that (cached unless "
               "said)");
  tree.choices(app, "--mpi", choices->mpi.mpis, bench::mpi_names(), "The suites with MPI: which");
  tree.choices(app, "--test", choices->mpi.tests, bench_test_names(),
               "The suites with MPI: which of a suite's tests or kernels");
  tree.choices(app, "--buffers", choices->mpi.buffers, bench::message_buffers(),
               "mpi, mpi-schemes: which kinds of buffers");
  tree.choices(app, "--class", choices->mpi.classes, {"S", "W", "A", "B", "C"},
               "nas: which sizes of the problem");
  app.add_option("--ranks", choices->mpi.ranks,
                 "mpi, mpi-kernels, nas: how many ranks, such as 2,4 (tests of a pair: 2 only)")
      ->type_name("COUNT,...")
      ->delimiter(',')
      ->check(CLI::Range(2, 1024), "");
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
