// libFuzzer on the reader of traces. Checksums would stop every change, and compression most: so an
// input is either a trace whose checksums are put right, or columns that are made into a trace.
// What the reader lets through must keep to the format's rules.
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "format/coding/columns.hpp"
#include "format/reader.hpp"
#include "format/rules.hpp"
#include "format/writer.hpp"
#include "unit/sim/temporary_folder.hpp"
#include "unit/sim/whole_trace.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace bcisim;

void demand(bool holds) {
  if (!holds) std::abort();
}

constexpr std::size_t fixed_header = 64;

// Puts the checksums right of whatever looks like a header and frames.
void repair(Bytes& trace) {
  const auto put_sum = [&](std::size_t from, std::size_t to) {
    if (trace.size() - to < 4) return;
    Bytes sum;
    put_fixed(sum, crc32({&trace[from], to - from}));
    std::memcpy(&trace[to], sum.data(), 4);
  };
  if (trace.size() < fixed_header) return;
  std::size_t at = fixed_header + get_fixed<std::uint32_t>(&trace[fixed_header - 4]);
  if (at > trace.size()) return;
  put_sum(0, at);
  at += 4;
  while (at < trace.size() && trace.size() - at >= 8) {
    const std::size_t end = at + 8 + get_fixed<std::uint32_t>(&trace[at + 4]);
    if (end > trace.size()) return;
    put_sum(at, end);
    at = end + 4;
  }
}

Bytes header() {
  Bytes made(layout::magic.begin(), layout::magic.end());
  put_fixed(made, layout::version);
  made.resize(fixed_header - 4);
  put_fixed(made, std::uint32_t{2});
  made.insert(made.end(), {'{', '}', 0, 0, 0, 0});
  return made;
}

// A frame's numbers, then columns: u16 bytes and these.
Bytes from_columns(ByteReader input) {
  Bytes trace = header();
  Compressor compressor(1);
  try {
    while (!input.empty()) {
      Bytes payload;
      for (int i = 0; i < 4; ++i) put_varint(payload, input.varint());
      for (unsigned i = 0; i < layout::columns; ++i) {
        const std::size_t low = input.byte();
        compressor.append(payload, input.bytes(low + 256u * input.byte()));
      }
      put_fixed(trace, static_cast<std::uint32_t>(layout::FrameKind::instructions));
      put_fixed(trace, static_cast<std::uint32_t>(payload.size()));
      trace.insert(trace.end(), payload.begin(), payload.end());
      put_fixed(trace, std::uint32_t{0});
    }
  } catch (const FrameError&) {
  }
  return trace;
}

Bytes seed_trace(unsigned seed) {
  test::TemporaryFolder folder;
  test::AnyContents contents(seed);
  TraceWriter writer(folder.path("a"), {{"seed", seed}});
  writer.set_checkpoint({{{5, true}, {70, false}}});
  for (int i = 0; i < 20; ++i) writer.add_static(contents.static_instruction());
  writer.add(contents.chunk(200, 20));
  writer.finish();
  const std::string bytes = folder.read("a");
  return {bytes.begin(), bytes.end()};
}

Bytes seed_columns(unsigned seed) {
  const Bytes trace = seed_trace(seed);
  std::size_t at = fixed_header + get_fixed<std::uint32_t>(&trace[fixed_header - 4]) + 4;
  at += 12 + get_fixed<std::uint32_t>(&trace[at + 4]);  // the checkpoint
  ByteReader payload({&trace[at + 8], get_fixed<std::uint32_t>(&trace[at + 4])});
  Bytes made;
  for (int i = 0; i < 4; ++i) put_varint(made, payload.varint());
  Decompressor decompressor;
  for (unsigned i = 0; i < layout::columns; ++i) {
    Bytes column;
    decompressor.take(payload, column);
    put_fixed(made, static_cast<std::uint16_t>(column.size()));
    made.insert(made.end(), column.begin(), column.end());
  }
  return made;
}

void check(const TraceReader& reader, const Chunk& chunk, rules::CopyState& copies) {
  demand(chunk.instructions.size() <= most_instructions_of_chunk);
  std::size_t references = 0;
  for (const DynamicInstruction& instruction : chunk.instructions) {
    demand(instruction.what < reader.statics().size());
    demand(instruction.references <= most_references);
    demand(instruction.first_reference == references);
    references += instruction.references;
  }
  demand(references == chunk.references.size());
  for (const Reference& reference : chunk.references) demand(rules::valid(reference));
  std::size_t calls = 0, devices = 0;
  std::uint32_t before = 0;
  for (const Event& event : chunk.events) {
    demand(event.before >= before && event.before <= chunk.instructions.size());
    before = event.before;
    if (event.kind == Event::Kind::copy_begin) copies.begin();
    if (event.kind == Event::Kind::copy_end) copies.end();
    if (event.kind == Event::Kind::copy_begin) demand(event.index == calls++);
    if (event.kind == Event::Kind::device) demand(event.index == devices++);
  }
  demand(calls == chunk.copies.size() && devices == chunk.devices.size());
  for (const CopyCall& call : chunk.copies) {
    demand(call.destination_pages.size() == rules::pages_of(call.destination, call.bytes));
    demand(call.kind == CopyKind::fill ||
           call.source_pages.size() == rules::pages_of(call.source, call.bytes));
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  if (size > 8 && seed % 500 != 0) return LLVMFuzzerMutate(data, size, most);
  Bytes made = {static_cast<std::uint8_t>(seed & 1)};
  const Bytes contents = (seed & 1) != 0 ? seed_columns(seed) : seed_trace(seed);
  made.insert(made.end(), contents.begin(), contents.end());
  if (made.size() > most) made.resize(most);
  std::memcpy(data, made.data(), made.size());
  return made.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  Bytes trace =
      (data[0] & 1) != 0 ? from_columns(ByteReader(rest)) : Bytes(rest.begin(), rest.end());
  repair(trace);
  try {
    TraceReader reader(trace, "fuzz");
    Chunk chunk;
    rules::CopyState copies;
    while (reader.next(chunk)) check(reader, chunk, copies);
  } catch (const TraceError& error) {
    demand(std::strncmp(error.what(), "fuzz, offset ", 13) == 0);
  }
  return 0;
}
