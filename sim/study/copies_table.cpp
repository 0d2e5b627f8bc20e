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
  const auto ratio = [](std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  };
  const auto add = [&](const char* name, std::optional<double> paper, auto value) {
    figure.series.push_back({name, with_average(experiments, value), average_alone(figure, paper)});
  };
  add("cycles of a bulk instruction", 9086, [&](std::size_t w) {
    const Result& result = experiments.result(w, "copy-engine");
    return ratio(result.copy_cycles, result.copies);
  });
  add("bytes of a bulk instruction", std::nullopt, [&](std::size_t w) {
    const Result& result = experiments.result(w, "copy-engine");
    return ratio(result.copy_bytes, result.copies);
  });
  add("instructions to the first dependent one", 16,
      [&](std::size_t w) { return ratio(profiles[w].to_dependent, profiles[w].with_dependent); });
  add("copies above 5000 instructions apart, %", 82,
      [&](std::size_t w) { return 100 * ratio(profiles[w].gaps_above_5000, profiles[w].gaps); });
  add("copies below 2000 instructions apart, %", 9,
      [&](std::size_t w) { return 100 * ratio(profiles[w].gaps_below_2000, profiles[w].gaps); });
  add("instructions in copy loops, %", std::nullopt, [&](std::size_t w) {
    return 100 * ratio(profiles[w].copy_instructions, profiles[w].instructions);
  });
  add("instructions in the kernel, %", std::nullopt, [&](std::size_t w) {
    return 100 * ratio(profiles[w].kernel_instructions, profiles[w].instructions);
  });
  add("cycles in which a copy is oldest (CopyEng), %", std::nullopt, [&](std::size_t w) {
    const Result& result = experiments.result(w, "copy-engine");
    return 100 * ratio(result.rob_clog_cycles, result.cycles);
  });
  // Where the oldest instruction waits for copies.
  const auto add_waits = [&](const char* what, std::uint64_t Result::*cycles) {
    for (const auto& [label, run] :
         {std::pair{"0-DMA", std::string("0-dma")}, std::pair{"FastBCI", bci({})}}) {
      add(fmt::format("cycles in which {} ({}), %", what, label).c_str(), std::nullopt,
          [&, run = run](std::size_t w) {
            const Result& result = experiments.result(w, run);
            return 100 * ratio(result.*cycles, result.cycles);
          });
    }
  };
  add_waits("an instruction waits for a copy's bytes", &Result::dependence_cycles);
  add_waits("a copy waits for the engine", &Result::engine_cycles);
  add_waits("a fence waits for copies", &Result::fence_cycles);
  add("CPI of the loop", std::nullopt, [&](std::size_t w) {
    const Result& result = experiments.result(w, "traditional");
    return ratio(result.cycles, result.instructions);
  });
  return figure;
}

}  // namespace bcisim
