#include "cli/transparent/transparent_demo.hpp"
#include "bench/kit/stats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/kit/command.hpp"
#include "bench/transparent/preload.hpp"
#include "cli/kit/terminal.hpp"
#include "tools/failure.hpp"
#include "tools/program.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

// It prints what must not change, then the time that the copies took.
constexpr const char* script = R"python(
import time, zlib
a = bytes(range(256)) * (16 << 12)
begun = time.perf_counter_ns()
for i in range(12):
    b = bytearray(a)
    b[i] ^= 1
    c = bytes(b)
taken = time.perf_counter_ns() - begun
print(zlib.crc32(c), taken)
)python";
constexpr unsigned demo_rounds = 3, limit_s = 20;

struct PythonRun {
  std::string output;
  double ns = 0;
};

PythonRun run_once(const tools::Environment& environment) {
  const bench::CommandOutcome outcome =
      bench::run_command({"python3", "-c", script}, environment, limit_s);
  const std::size_t blank = outcome.out.find(' ');
  if (!outcome.good() || blank == std::string::npos)
    throw tools::CommandFailure(fmt::format("python3 failed ({})", bench::reason_of(outcome)));
  return {outcome.out.substr(0, blank), std::stod(outcome.out.substr(blank))};
}

}  // namespace

void show_unmodified_program() {
  if (tools::find_program("python3").empty()) {
    fmt::print("{}", wrapped("There is no python3 here to show it with; install one.", 3));
    return;
  }
  try {
    const tools::Environment with = bench::transparent_environment("");
    std::vector<double> without_ns, with_ns;
    for (unsigned round = 0; round < demo_rounds; ++round) {
      const PythonRun plain = run_once({}), taken_over = run_once(with);
      if (plain.output != taken_over.output)
        throw tools::CommandFailure("its output changed; please report that");
      without_ns.push_back(plain.ns);
      with_ns.push_back(taken_over.ns);
    }
    const double before_ns = bench::median(without_ns), after_ns = bench::median(with_ns);
    fmt::print("   python3 makes 24 copies of 16 MiB in {:>8}\n", tools::show_ns(before_ns));
    fmt::print("   under haul run --transparent in      {:>8}\n", tools::show_ns(after_ns));
    const double ratio = after_ns / before_ns;
    constexpr double gain_ratio = 0.95;  // above it is noise
    fmt::print(
        "{}",
        wrapped(
            ratio < gain_ratio
                ? fmt::format("Each copy goes to new memory, whose page faults take longer than "
                              "its bytes; haul makes huge pages first, and shares the work where "
                              "a core is free: {:.2f} of the time, and the output is the same.",
                              ratio)
                : fmt::format("{:.2f} of the time, and the output is the same: no gain just now, "
                              "since the machine is busy or gives no huge pages (`haul info`).",
                              ratio),
            3));
  } catch (const tools::CommandFailure& failure) {
    fmt::print("{}", wrapped(fmt::format("It cannot be shown here: {}.", failure.what()), 3));
  }
}

}  // namespace haul::cli
