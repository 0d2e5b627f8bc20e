// Cuts a piece out of a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "format/writer.hpp"

namespace bcisim {

struct CutOptions {
  std::string input, output;       // paths; may be the same
  std::uint64_t skip = 0;          // instructions
  std::uint64_t keep = 1'000'000;  // instructions; fewer when the trace ends
  int level = TraceWriter::highest_level;
};

struct CutSummary {
  std::uint64_t skipped = 0, kept = 0;  // instructions, with what the rules below added
  std::size_t blocks = 0;               // of the checkpoint
  std::uint64_t file_bytes = 0;
};

// The new trace begins with a checkpoint: what was skipped has run through a BlockCache (loads,
// stores, instructions fetched, writes by devices). A copy that has begun before the cut is skipped
// whole, one that has not ended at its end is kept whole. Metadata are those of the input,
// "symbols" as far as they are needed, and "cut": {"skipped", "kept"}. Throws TraceError, also when
// the trace has no instructions behind those to skip; there is no file then.
CutSummary cut(const CutOptions& options);

}  // namespace bcisim
