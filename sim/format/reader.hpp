// Reads a trace (format/README.md), chunk by chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/chunk.hpp"
#include "format/error.hpp"
#include "format/totals.hpp"

namespace bcisim {

// Needs one pass; its memory is a frame's (about 10 MB), the checkpoint's and that of the static
// instructions. Trusts no file: whatever a chunk says keeps to the limits in format/ (indices,
// lengths, pages, copies that begin and end in turn). Every function may throw TraceError.
// Not for several threads at once; several readers of a file are fine.
class TraceReader {
 public:
  explicit TraceReader(const std::string& path);
  // Of a trace in memory, which must outlive the reader; `name` stands in errors.
  TraceReader(std::span<const std::uint8_t> memory, const std::string& name);
  ~TraceReader();

  // What the trace's maker wrote about it: a JSON object. Known keys: "symbols", an object that
  // gives copy sites ("0xffffffff81234567") their names ("tcp_recvmsg+0x123").
  const nlohmann::json& metadata() const;
  // Known from the beginning, and proven once next() has returned false.
  const Totals& totals() const;
  const std::optional<Checkpoint>& checkpoint() const;

  // The static instructions known so far; next() appends. An index stays what it is, a pointer or
  // reference does not.
  const std::vector<StaticInstruction>& statics() const;

  // The next stretch into `chunk`, whose memory is used again: at most most_instructions_of_chunk
  // instructions, now and then fewer, rarely none (events alone). False at the end, `chunk` is
  // empty then.
  bool next(Chunk& chunk);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bcisim
