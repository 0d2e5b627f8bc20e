// haul tune: calibrates in the foreground.
#include <fmt/format.h>
#include <haul/haul.h>

#include "bench/kit/stage.hpp"
#include "cli/kit/calibration_files.hpp"
#include "cli/kit/terminal.hpp"
#include "cli/kit/tree.hpp"
#include "cli/mpi/rings/calibrate_rings.hpp"
#include "cli/mpi/rings/ring_words.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

void show_percent(int percent, void* bar) {
  static_cast<ProgressBar*>(bar)->show(percent / 100.0, "");
}

void report() {
  static std::byte from[4096], to[4096];
  haul_request request = haul_request_copy(to, from, sizeof to);
  haul_plan plan{};
  plan.size = sizeof plan;
  bool awake = bench::settle_mover();
  tools::require(haul_explain(&request, &plan), "haul_explain()");
  fmt::print("calibrated");
  for (const CalibrationFile& file : calibration_files()) {
    if (!file.temporary) fmt::print("; stored in {}", file.path.string());
  }
  fmt::print("\n");
  for (const CalibrationFile& file : calibration_files()) {
    if (const auto quality = calibration_quality(file.path); quality && !file.temporary)
      fmt::print("measured {}\n", describe(*quality));
  }
  constexpr std::uint64_t never = std::uint64_t{1} << 50;
  if (!awake) {
    haul_state state{};
    state.size = sizeof state;
    tools::require(haul_query(&state), "haul_query()");
    fmt::print("the caller copies everything itself: {}\n", state.mover_status);
  } else if (plan.inline_below_bytes >= never) {
    fmt::print("the caller copies everything itself: no size gains from a dedicated core here\n");
  } else {
    fmt::print("copies of {} and more go to the mover while it is awake",
               tools::show_bytes(plan.inline_below_bytes));
    if (plan.mover_from_bytes > plan.inline_below_bytes) {
      const bool ever = plan.mover_from_bytes < never;
      fmt::print(" if their source lies in memory, and {}",
                 ever ? "all of " + tools::show_bytes(plan.mover_from_bytes) + " and more"
                      : "none whose source is cached");
    }
    fmt::print("\n");
  }
}

}  // namespace

void add_tune(Tree& tree) {
  CLI::App& app = tree.command(
      "tune", "Measure this machine now, in a fraction of a second, and store the figures",
      "Programs that use haul calibrate by themselves, in the background, once a machine, and haul "
      "run --mpi measures before the first job how messages between two of its CPUs are written "
      "best. This does both at once and thoroughly: run it while the machine is quiet. On a busy "
      "one it says so, and keeps the figures of before.");
  app.callback([] {
    RingCalibration rings;
    {
      ProgressBar bar("calibrating");
      tools::require(haul_tune(show_percent, &bar), "haul_tune()");
      rings = calibrate_rings([&bar](double share) { bar.show(share, "messages"); });
    }
    report();
    if (!rings.why.empty()) {
      fmt::print("{}\n", rings.why);
    } else {
      HaulPrivateMessageLimits limits;
      haul_private_message_limits(&limits);
      fmt::print("messages between processes:\n");
      print_rings(limits);
    }
  });
}

}  // namespace haul::cli
