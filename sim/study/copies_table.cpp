#include "study/copies_table.hpp"

#include <fmt/format.h>
#include <vector>

#include "study/profile.hpp"
#include "study/series.hpp"

namespace bcisim {

Figure copies_table(const Experiments& experiments) {
  Figure figure = per_workload(experiments, "copies", "Copies", "");
  figure.drawing = Drawing::table;
  std::vector<Profile> profiles;
  for (const Workload& workload : experiments.workloads())
    profiles.push_back(profile_of(workload.trace));
  // The ratio of two counts, times `unit`: of a run's results, or of the trace.
  const auto add_run = [&](const std::string& name, std::optional<double> paper, double unit,
                           const std::string& run, std::uint64_t Result::*count,
                           std::uint64_t Result::*of) {
    add_series(figure, experiments, name, paper, [&](std::size_t w) {
      const Result& result = experiments.result(w, run);
      return unit * ratio(result.*count, result.*of);
    });
  };
  const auto add_trace = [&](const char* name, std::optional<double> paper, double unit,
                             std::uint64_t Profile::*count, std::uint64_t Profile::*of) {
    add_series(figure, experiments, name, paper,
               [&](std::size_t w) { return unit * ratio(profiles[w].*count, profiles[w].*of); });
  };
  add_run("cycles of a bulk instruction", 9086, 1, "copy-engine", &Result::copy_cycles,
          &Result::copies);
  add_run("bytes of a bulk instruction", std::nullopt, 1, "copy-engine", &Result::copy_bytes,
          &Result::copies);
  add_trace("instructions to the first dependent one", 16, 1, &Profile::to_dependent,
            &Profile::with_dependent);
  add_trace("copies above 5000 instructions apart, %", 82, 100, &Profile::gaps_above_5000,
            &Profile::gaps);
  add_trace("copies below 2000 instructions apart, %", 9, 100, &Profile::gaps_below_2000,
            &Profile::gaps);
  add_trace("instructions in copy loops, %", std::nullopt, 100, &Profile::copy_instructions,
            &Profile::instructions);
  add_trace("instructions in the kernel, %", std::nullopt, 100, &Profile::kernel_instructions,
            &Profile::instructions);
  add_run("cycles in which a copy is oldest (CopyEng), %", std::nullopt, 100, "copy-engine",
          &Result::rob_clog_cycles, &Result::cycles);
  // Where the oldest instruction waits for copies.
  const auto add_waits = [&](const char* what, std::uint64_t Result::*cycles) {
    for (const auto& [label, run] :
         {std::pair{"0-DMA", std::string("0-dma")}, std::pair{"FastBCI", bci({})}}) {
      add_run(fmt::format("cycles in which {} ({}), %", what, label), std::nullopt, 100, run,
              cycles, &Result::cycles);
    }
  };
  add_waits("an instruction waits for a copy's bytes", &Result::dependence_cycles);
  add_waits("a copy waits for the engine", &Result::engine_cycles);
  add_waits("a fence waits for copies", &Result::fence_cycles);
  add_run("CPI of the loop", std::nullopt, 1, "traditional", &Result::cycles,
          &Result::instructions);
  return figure;
}

}  // namespace bcisim
