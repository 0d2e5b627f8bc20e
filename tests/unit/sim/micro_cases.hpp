// Short programs and the cycles that they take, computed by hand from sim/model/README.md: both
// models of the machine must find these. expect_case<Core>() runs one on a core that is made from
// (Parameters, Scheme) and has warm(), finish() and result() besides what model/replay.hpp says.
//
// The arithmetic: the first cycle is 0, and Result::cycles counts cycles, so a program whose last
// instruction retires in cycle r takes r + 1; one whose last copy is done at e (its bytes are there
// in cycle e) takes e where that is more. By default a case has TLB misses that cost nothing
// (`no_walks()`), so its first instruction waits for its block from memory and is fetched in cycle
// 2 + 8 + 300 = 310 (`first`); it is dispatched at 318, issues at 319, and is complete and retires
// at 320 if it is an addition. A load that misses everywhere and issues at i is complete at i +
// 310.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scheme.hpp"
#include "unit/sim/micro_trace.hpp"

namespace bcisim::test {

struct MicroCase {
  std::string name;
  MicroTrace program;
  Parameters parameters;
  Scheme scheme = Scheme::fast_bci;
  std::uint64_t cycles = 0;
  // What else is known of the result.
  std::optional<std::uint64_t> rob_clog, dependence, engine, fence, copy_cycles, bus_blocks;
  // A younger instruction's access comes before an older one's to the same block: a model that
  // takes them in the program's order cannot have the same figures.
  bool overtakes = false;
};

inline MicroCase micro_case(std::string name, Scheme scheme, MicroTrace program,
                            Parameters parameters, std::uint64_t cycles) {
  MicroCase one;
  one.name = std::move(name);
  one.program = std::move(program);
  one.parameters = parameters;
  one.scheme = scheme;
  one.cycles = cycles;
  return one;
}

// Parameters of most cases: see above. Whole destination blocks are written unread, and what passes
// the caches is done when the bus has carried it; what this is otherwise has cases of its own.
inline Parameters no_walks() {
  Parameters parameters;
  parameters.walk_cycles = 0;
  parameters.reads_destination = false;
  parameters.write_buffer_entries = 0;
  return parameters;
}

template <class Change>
Parameters with(Change&& change) {
  Parameters parameters = no_walks();
  change(parameters);
  return parameters;
}

std::vector<MicroCase> core_cases();    // instructions alone
std::vector<MicroCase> memory_cases();  // caches, MSHRs, the bus, devices
std::vector<MicroCase> copy_cases();    // bulk copies

inline std::vector<MicroCase> micro_cases() {
  std::vector<MicroCase> all = core_cases();
  for (const auto& more : {memory_cases(), copy_cases()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

template <class Core>
Result run_case(const MicroCase& one) {
  Core core(one.parameters, one.scheme);
  one.program.play(core);
  core.finish();
  return core.result();
}

template <class Core>
void expect_case(const MicroCase& one) {
  SCOPED_TRACE(one.name);
  const Result result = run_case<Core>(one);
  EXPECT_EQ(result.cycles, one.cycles);
  const auto expect = [](const char* what, std::uint64_t got, std::optional<std::uint64_t> wanted) {
    EXPECT_EQ(got, wanted.value_or(got)) << what;
  };
  expect("rob_clog_cycles", result.rob_clog_cycles, one.rob_clog);
  expect("dependence_cycles", result.dependence_cycles, one.dependence);
  expect("engine_cycles", result.engine_cycles, one.engine);
  expect("fence_cycles", result.fence_cycles, one.fence);
  expect("copy_cycles", result.copy_cycles, one.copy_cycles);
  expect("bus_blocks", result.bus_blocks, one.bus_blocks);
}

}  // namespace bcisim::test
