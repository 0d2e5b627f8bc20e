// haul demo: the tour for a newcomer. Seven stops, each with its number and one sentence; every
// byte that is copied is checked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "bench/kit/suite.hpp"
#include "cli/kit/machine.hpp"
#include "cli/kit/terminal.hpp"
#include "cli/kit/tree.hpp"
#include "cli/mpi/mpi_demo.hpp"
#include "cli/remote/atomic_demo.hpp"
#include "cli/transparent/transparent_demo.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using tools::show_bytes;
using tools::show_ns;

using tools::mib;
constexpr std::size_t order_bytes = 64 * mib, pollution_bytes = 4 * mib;
constexpr double gain_ratio = 0.98;  // below this haul was faster by more than the noise
constexpr double hidden_share =
    0.1;  // above this some of the copy was hidden, by more than the noise

void stop(int number, const char* title) {
  fmt::print("\n{}\n", bold(fmt::format("{}. {}", number, title)));
}
void sentence(const std::string& text) {
  fmt::print("{}", wrapped(text, 3));
}

double figure(const bench::Row& row, const char* field) {
  return row.at(field).get<double>();
}

std::vector<bench::Row> measure(const bench::Suite& suite, std::size_t bytes, bench::Stage& stage) {
  bench::SuiteOptions options;
  options.quick = true;
  options.sizes = {bytes};
  ProgressBar bar("   measuring");
  options.progress = [&bar](double share, const std::string& step) { bar.show(share, step); };
  return bench::run_suite(suite, stage, options).rows;
}

void show_machine(const Machine& machine) {
  stop(1, "This machine");
  const Topology& topology = *machine.topology;
  fmt::print("   {}: {} CPU{}, L2 {} each, L3 {}\n", cpu_brand(), topology.allowed_count,
             topology.allowed_count == 1 ? "" : "s", show_bytes(topology.l2_bytes),
             show_bytes(topology.l3_bytes));
  for (const CacheGroup& group : cache_groups(topology)) {
    fmt::print("   CPUs that share an L3: [{}]\n", group.cpus);
  }
  std::vector<std::string> ready, absent;
  for (const haul_engine_info& engine : machine.engines) {
    if (std::string_view(engine.name) == "fault") continue;  // moves bytes only to test haul
    (engine.available != 0 ? ready : absent).emplace_back(engine.name);
  }
  fmt::print("   engines that can move bytes: {}{}\n", fmt::join(ready, ", "),
             absent.empty() ? "" : fmt::format(" (absent: {})", fmt::join(absent, ", ")));
  if (machine.state.mover_cpu >= 0) {
    sentence(
        fmt::format("haul keeps CPU {} ready to copy while your program computes on another; it "
                    "spins while there is work and sleeps when there is none.",
                    machine.state.mover_cpu));
  } else {
    sentence(fmt::format(
        "No CPU is free to copy for others here, so haul copies on the caller's own: {}",
        machine.state.mover_status));
  }
}

// One bar, whose parts are drawn to the scale of the whole picture.
void print_bar(const char* name, const std::vector<std::pair<char, double>>& parts,
               double scale_ns) {
  constexpr double cells = 56;
  std::string bar;
  double total_ns = 0, drawn = 0;
  for (const auto& [mark, ns] : parts) {
    total_ns += ns;
    double until = std::round(total_ns / scale_ns * cells);
    bar += std::string(static_cast<std::size_t>(std::max(until - drawn, 0.0)), mark);
    drawn = std::max(drawn, until);
  }
  fmt::print("   {:<7} {:<56} {:>8}\n", name, bar, show_ns(total_ns));
}

// The smallest of a few sizes that the planner hands over at this moment.
std::size_t hidden_size() {
  static std::byte from[4096], to[4096];
  haul_request request = haul_request_copy(to, from, sizeof to);
  haul_plan plan{};
  plan.size = sizeof plan;
  (void)bench::wake_mover();
  tools::require(haul_explain(&request, &plan), "haul_explain()");
  for (std::size_t bytes : {mib, 4 * mib, 16 * mib}) {
    if (bytes >= plan.inline_below_bytes) return bytes;
  }
  return mib;
}

void show_hiding(bench::Stage& stage) {
  stop(2, "A copy hidden behind compute");
  const std::size_t hide_bytes = hidden_size();
  std::vector<bench::Row> rows = measure(bench::hide_suite, hide_bytes, stage);
  const bench::Row& row = rows.back();  // the cold one
  double memcpy_ns = figure(row, "memcpy_ns"), compute_ns = figure(row, "compute_ns");
  double read_ns = figure(row, "read_ns"), total_ns = figure(row, "total_ns");
  double serial_ns = memcpy_ns + compute_ns + read_ns, later_ns = figure(row, "remote_read_ns");
  double middle_ns = std::max(total_ns - compute_ns - later_ns, 0.0);
  double scale_ns = std::max(serial_ns, total_ns);
  print_bar("memcpy", {{'c', memcpy_ns}, {'=', compute_ns}, {'r', read_ns}}, scale_ns);
  print_bar("haul", {{'=', compute_ns}, {'c', middle_ns}, {'r', later_ns}}, scale_ns);
  fmt::print(
      "{}\n",
      dim("           c: the caller copies or waits   =: it computes   r: it reads the copy"));
  double ratio = figure(row, "ratio_serial");
  double overlap = std::clamp(figure(row, "overlap"), 0.0, 1.0);
  if (row.at("scheme").get<std::string>().starts_with('S')) {
    sentence(fmt::format(
        "Here the caller copied by itself, so nothing hid; with haul it took {:.2f} of the "
        "time with memcpy.",
        ratio));
  } else if (overlap < hidden_share) {
    sentence(fmt::format(
        "The mover's core was busy with other programs just now, so the waiting caller did "
        "most of the copying and little hid; with haul it took {:.2f} of the time with "
        "memcpy. Run this again on a quiet machine.",
        ratio));
  } else if (ratio < gain_ratio) {
    sentence(fmt::format(
        "Copying {} from memory, computing, and reading the copy took {:.0f} % less time "
        "with haul: {:.0f} % of the copy hid behind the compute.",
        show_bytes(hide_bytes), (1 - ratio) * 100, overlap * 100));
  } else {
    sentence(
        fmt::format("haul took {:.2f} times as long as memcpy here; the cores are far apart or "
                    "busy just now, `haul tune` on a quiet machine teaches the planner.",
                    ratio));
  }
}

void show_first_block(bench::Stage& stage) {
  stop(3, "The first block of a large copy");
  std::vector<bench::Row> rows = measure(bench::order_suite, order_bytes, stage);
  const bench::Row& row = rows.front();
  double memcpy_ns = figure(row, "memcpy_ns"), first_ns = figure(row, "first_step_ns");
  double ratio = figure(row, "ratio");
  fmt::print("   memcpy  the first 64 KiB of {} can be used after {:>8}\n", show_bytes(order_bytes),
             show_ns(memcpy_ns));
  fmt::print("   haul    the first 64 KiB of {} can be used after {:>8}\n", show_bytes(order_bytes),
             show_ns(first_ns));
  if (first_ns < 0.5 * memcpy_ns) {
    sentence(fmt::format(
        "haul_wait_range() waits for the bytes it is asked for, {:.0f} times sooner than "
        "memcpy returns; a program that sums the copy front to back while it is made "
        "needs {:.2f} of the time of memcpy and then sum.",
        memcpy_ns / std::max(first_ns, 1.0), ratio));
  } else {
    sentence(
        fmt::format("Here the caller copied all of it first, as no other CPU could; summing while "
                    "copying took {:.2f} of the time of memcpy and then sum.",
                    ratio));
  }
}

void show_pollution(bench::Stage& stage) {
  stop(4, "What a non-cacheable copy spares");
  std::vector<bench::Row> rows = measure(bench::affinity_suite, pollution_bytes, stage);
  auto pair = [&](const char* name) -> const bench::Row& {
    return *std::find_if(rows.begin(), rows.end(), [&](const bench::Row& row) {
      return row.at("source") == name && row.at("destination") == name;
    });
  };
  const bench::Row &plain = pair("cacheable"), &kept = pair("non-cacheable");
  // A figure stands beside the undisturbed one of its own rounds, because its ratio compares these
  // two.
  auto show = [](const char* what, const bench::Row& row) {
    fmt::print("   {:<42} {:>8} {:>16}\n", what, show_ns(figure(row, "bystander_ns_per_line")),
               show_ns(figure(row, "undisturbed_ns_per_line")));
  };
  fmt::print("   re-reading a 512 KiB working set, each cache line:\n");
  fmt::print("   {:<42} {:>8} {:>16}\n", "", "then", "without a copy");
  show("after an ordinary 4 MiB copy on this core", plain);
  show("after a non-cacheable one", kept);
  double spared = figure(plain, "ratio") - figure(kept, "ratio");
  if (spared > 0.05) {
    sentence(fmt::format(
        "A copy of bytes that nobody reads soon need not push the program's own data out "
        "of the cache: {:.2f} times the undisturbed time instead of {:.2f}.",
        figure(kept, "ratio"), figure(plain, "ratio")));
  } else {
    sentence(
        "The difference is within the noise just now; this core's cache kept the working set "
        "either way.");
  }
}

void run_demo() {
  fmt::print("{} moves bulk memory without stalling the program that asked.\n",
             bold(fmt::format("haul {}", haul_version())));
  show_machine(examine_machine());
  std::fflush(stdout);
  bench::Stage stage;
  show_hiding(stage);
  std::fflush(stdout);
  show_first_block(stage);
  std::fflush(stdout);
  show_pollution(stage);
  std::fflush(stdout);
  stop(5, "A counter on another host");
  show_counter(stage);
  std::fflush(stdout);
  stop(6, "This machine's MPI, unmodified, with and without haul");
  const int caller = stage.caller_cpu(), partner = stage.partner_cpu();
  show_messages(partner >= 0 && partner != caller ? fmt::format("{},{}", caller, partner)
                                                  : fmt::format("{}", caller));
  std::fflush(stdout);
  stop(7, "This machine's python3, unmodified, with and without haul");
  show_unmodified_program();
  fmt::print(
      "\n{}",
      wrapped("Every byte that was copied has been checked. Next: `haul explain --size 64K` "
              "shows the plan of one copy, `haul bench hide` measures all sizes, `haul info` "
              "tells what this machine lacks.",
              0));
}

}  // namespace

void add_demo(Tree& tree) {
  CLI::App& app = tree.command(
      "demo", "The tour: what haul does, measured here, in under a minute",
      "Shows this machine, a copy hidden behind compute, the time to the "
      "first block of a large copy, what a non-cacheable copy spares, "
      "a counter on another host, the messages of this machine's MPI and the copies of its python3 "
      "with and without haul. "
      "Every byte is checked.");
  app.callback(run_demo);
}

}  // namespace haul::cli
