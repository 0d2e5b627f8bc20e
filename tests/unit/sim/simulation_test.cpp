// Runs of traces: what is played and what is counted.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "format/writer.hpp"
#include "study/simulation.hpp"
#include "unit/sim/temporary_folder.hpp"

namespace bcisim::test {
namespace {

constexpr std::uint64_t instructions = 5 * most_instructions_of_chunk;

class SimSimulation : public ::testing::Test {
 protected:
  // Loads of a few pages, over and over: from memory the first time.
  void SetUp() override {
    TraceWriter writer(trace, nlohmann::json::object());
    writer.add_static({0x1000, 1, 1, 1, 4, InstructionClass::simple});
    Chunk chunk;
    for (std::uint32_t i = 0; i < instructions; ++i) {
      const std::uint64_t address = 0x100000 + 64 * std::uint64_t{i % 1000};
      chunk.instructions.push_back({0, i, 1, false});
      chunk.references.push_back({address, address, 8, false});
    }
    writer.add(chunk);
    writer.finish();
  }
  Result run(Model model, std::uint64_t wanted, std::uint64_t uncounted) const {
    return simulate({{trace, Configuration{}, model}}, {1, wanted, nullptr, uncounted}).front();
  }

  TemporaryFolder folder;
  std::string trace = folder.path("a");
};

// What warms the caches and what is counted after make up the whole.
TEST_F(SimSimulation, WhatIsUncountedWarmsTheCaches) {
  for (const Model model : {Model::fast, Model::stepped}) {
    const Result all = run(model, ~std::uint64_t{0}, 0);
    const Result rest = run(model, ~std::uint64_t{0}, 2 * most_instructions_of_chunk);
    EXPECT_EQ(all.instructions, instructions);
    // What is under way between fetch and retirement when counting begins is counted.
    EXPECT_NEAR(static_cast<double>(rest.instructions), 3.0 * most_instructions_of_chunk, 200);
    EXPECT_EQ(all.l2_misses, 1000u + 1);  // and the code's
    EXPECT_EQ(rest.l2_misses, 0u);
    EXPECT_LT(rest.cycles, all.cycles / 2);
    EXPECT_GT(rest.cycles, rest.instructions / 4 - 2);
  }
}

// The end of a chunk is when counting begins; as many are counted as were asked for.
TEST_F(SimSimulation, AsManyAreCountedAsWereAskedFor) {
  const Result rest = run(Model::fast, 4000, 1000);
  EXPECT_EQ(rest.instructions, most_instructions_of_chunk);
  EXPECT_EQ(run(Model::fast, 4000, 0).instructions, most_instructions_of_chunk);
}

}  // namespace
}  // namespace bcisim::test
