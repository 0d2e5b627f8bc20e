// libFuzzer on the converter: a raw stream of anybody's choice becomes a trace that can be read, or
// an error, and never a crash or a file that is half written.
#include <cstdlib>
#include <cstring>

#include "convert/convert.hpp"
#include "format/reader.hpp"
#include "unit/sim/stream_maker.hpp"
#include "unit/sim/temporary_folder.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace bcisim;

void demand(bool holds) {
  if (!holds) std::abort();
}

constexpr std::uint64_t kernel = 0xffffffff81000000, memcpy_at = kernel + 0x100;

Bytes seed_stream() {
  test::StreamMaker stream;
  for (unsigned i = 0; i < 3; ++i) {
    stream.at(kernel, {0xe8, 0xfb, 0x00, 0x00, 0x00}).store(0x7000);
    stream.at(memcpy_at, {0xf3, 0x48, 0xa5}).load(0x5000).store(0x6000);
    stream.at(memcpy_at, {0xf3, 0x48, 0xa5}).load(0x5008);
    stream.at(kernel + 0x200, {0x48, 0xcf}).device(0x9000, 64, true);
    stream.at(memcpy_at, {0xf3, 0x48, 0xa5}).load(0x5008).store(0x6008);
    stream.at(memcpy_at + 3, {0xc3}).load(0x7000).at(kernel + 5, {0x74, 0xf9});
    stream.at(kernel + 7, {0x8b, 0x03})
        .refer(0x8ffe, 4, false, 0x5ffe)
        .at(kernel + 9, {0xeb, 0xf5});
  }
  return stream.end();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  if (size > 13 && seed % 1000 != 0) return LLVMFuzzerMutate(data, size, most);
  Bytes made = seed_stream();
  if (made.size() > most) made.resize(most);
  std::memcpy(data, made.data(), made.size());
  return made.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const test::TemporaryFolder folder;
  static const bool written = [] {
    folder.write("symbols",
                 "ffffffff81000000 T start\nffffffff81000100 T memcpy\n"
                 "ffffffff81000200 T asm_exc_page_fault\nffffffff81000300 T end\n");
    return true;
  }();
  demand(written);
  ConvertOptions options;
  options.output = folder.path("a.trace");
  options.symbols = folder.path("symbols");
  options.level = 1;
  try {
    const ConvertSummary summary = convert({data, size}, "fuzz", options);
    TraceReader reader(options.output);
    Chunk chunk;
    while (reader.next(chunk)) {
    }
    demand(reader.totals() == summary.totals);
    std::filesystem::remove(options.output);
  } catch (const TraceError& error) {
    demand(std::strncmp(error.what(), "fuzz, offset ", 13) == 0);
  }
  demand(folder.files() == 1);
  return 0;
}
