// Converts streams made by hand and reads what came of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "convert/convert.hpp"
#include "format/reader.hpp"
#include "unit/sim/stream_maker.hpp"
#include "unit/sim/temporary_folder.hpp"
#include "unit/sim/whole_trace.hpp"

namespace bcisim::test {

class ConvertFixture : public ::testing::Test {
 protected:
  // The traced kernel: its functions are 0x100 bytes long.
  static constexpr std::uint64_t kernel = 0xffffffff81000000, copy_user = kernel + 0x1000,
                                 copy_user_short = kernel + 0x1100, memcpy = kernel + 0x1200,
                                 memcpy_orig = kernel + 0x1300, memset = kernel + 0x1400,
                                 checksum = kernel + 0x1500, thunk = kernel + 0x1600,
                                 page_fault = kernel + 0x1700;

  ConvertFixture() {
    folder.write("symbols", R"(0000000000000000 A fixed_percpu_data
ffffffff81000000 T start
ffffffff81001000 T copy_user_generic_unrolled
ffffffff81001100 t copy_user_short_string
ffffffff81001200 T __memcpy
ffffffff81001200 W memcpy
ffffffff81001300 t memcpy_orig
ffffffff81001400 T memset
ffffffff81001500 T csum_partial_copy_generic
ffffffff81001600 T __x86_return_thunk
ffffffff81001700 T asm_exc_page_fault
ffffffff81001800 T end	[some_module]
)");
  }

  void run(const Bytes& stream) {
    ConvertOptions options;
    options.output = folder.path("a.trace");
    options.symbols = symbols;
    summary = convert(stream, "s", options);
    TraceReader reader(options.output);
    whole = {};
    Chunk chunk;
    while (reader.next(chunk)) append(whole.contents, chunk);
    whole.statics = reader.statics();
    metadata = reader.metadata();
    EXPECT_EQ(summary.totals, reader.totals());
  }
  std::string error_of(const Bytes& stream) {
    try {
      ConvertOptions options;
      options.output = folder.path("b.trace");
      options.symbols = symbols;
      convert(stream, "s", options);
    } catch (const TraceError& error) {
      return error.what();
    }
    return "none";
  }

  std::vector<bool> taken() const {
    std::vector<bool> all;
    for (const DynamicInstruction& instruction : whole.contents.instructions)
      all.push_back(instruction.taken);
    return all;
  }

  TemporaryFolder folder;
  std::string symbols = folder.path("symbols");
  ConvertSummary summary;
  WholeTrace whole;
  nlohmann::json metadata;
};

}  // namespace bcisim::test
