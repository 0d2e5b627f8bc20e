// The two models of the machine against each other, where no arithmetic by hand reaches.
#include <gtest/gtest.h>

#include "model/fast/core.hpp"
#include "model/stepped/core.hpp"
#include "unit/sim/micro_cases.hpp"
#include "unit/sim/random_trace.hpp"

namespace bcisim::test {
namespace {

struct Both {
  Result fast, stepped;
};

Both run(const MicroTrace& program, Parameters parameters, Scheme scheme) {
  MicroCase one = micro_case("", scheme, program, parameters, 0);
  return {run_case<FastCore>(one), run_case<SteppedCore>(one)};
}

// Pages from memory to memory, some to where others came from.
MicroTrace pages_copied(unsigned count, Affinities affinities) {
  MicroTrace program;
  for (unsigned i = 0; i < count; ++i) {
    program.copy(data_page(200 + 2 * i), data_page(20 + 2 * i), page_bytes, affinities);
  }
  return program;
}

// A copy's reads of both sides meet on the bus and at the MSHRs in the order of time.
TEST(ModelsAgree, PagesFromMemory) {
  for (const char* affinities : {"C_C", "NEU_C"}) {
    for (const Scheme scheme : {Scheme::copy_engine, Scheme::fast_bci}) {
      const Both both = run(pages_copied(10, *affinities_of(affinities)), Parameters{}, scheme);
      EXPECT_EQ(both.fast.cycles, both.stepped.cycles) << affinities;
      EXPECT_EQ(both.fast.copy_cycles, both.stepped.copy_cycles) << affinities;
    }
  }
}

// Of writes the fast model knows a little less: what a later read puts off has been waited for.
TEST(ModelsAgree, PagesFromMemoryPastTheCaches) {
  for (const char* affinities : {"C_NEU", "NEU_NEU", "NC_NC"}) {
    const Both both =
        run(pages_copied(10, *affinities_of(affinities)), Parameters{}, Scheme::fast_bci);
    const double ratio =
        static_cast<double>(both.fast.cycles) / static_cast<double>(both.stepped.cycles);
    EXPECT_NEAR(ratio, 1, 0.015) << affinities;
  }
}

// Where blocks wait for an older copy, those behind them wait, too.
TEST(ModelsAgree, ACopyOfWhatIsBeingCopied) {
  for (const unsigned distance : {64u, 1024u, page_bytes - 64u}) {
    MicroTrace program;
    program.copy(data_page(40), data_page(20), page_bytes);
    program.copy(data_page(60), data_page(40) + distance, page_bytes - distance);
    const Both both = run(program, no_walks(), Scheme::perfect_pipeline);
    EXPECT_EQ(both.fast.cycles, both.stepped.cycles) << distance;
  }
}

// With as many engines as copies none waits for one.
TEST(ModelsAgree, PerfectPipelinesHaveEnginesForAll) {
  const Both both = run(pages_copied(40, {}), Parameters{}, Scheme::perfect_pipeline);
  EXPECT_EQ(both.fast.engine_cycles, 0U);
  EXPECT_EQ(both.stepped.engine_cycles, 0U);
}

// The bus is what a model in program order cannot have quite right: a wide one.
TEST(ModelsAgree, RandomProgramsWithoutCopies) {
  Parameters parameters;
  parameters.bus_bytes_per_cycle = 64;
  double fast = 0, stepped = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    RandomOptions options;
    options.copies_percent = 0;
    const Both both = run(random_trace(seed, options), parameters, Scheme::fast_bci);
    fast += static_cast<double>(both.fast.cycles);
    stepped += static_cast<double>(both.stepped.cycles);
    EXPECT_EQ(both.fast.instructions, both.stepped.instructions);
    EXPECT_EQ(both.fast.mispredicted, both.stepped.mispredicted);
  }
  EXPECT_NEAR(fast / stepped, 1, 0.01);
}

}  // namespace
}  // namespace bcisim::test
