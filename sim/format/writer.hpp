// Writes a trace (format/README.md).
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "format/chunk.hpp"
#include "format/error.hpp"
#include "format/totals.hpp"

namespace bcisim {

// Writes to a temporary name beside `path`, which finish() renames to `path`; destroyed before, it
// removes it. Its memory is that of a frame and of the static instructions. Every function may
// throw TraceError, also for contents that break the rules of format/; the writer is of no use
// then.
class TraceWriter {
 public:
  static constexpr int default_level = 6, highest_level = 19;

  // `metadata`: a JSON object, see TraceReader::metadata(). `level`: zstd's, 1 to 22; the highest
  // levels are slow (19: about 1 MB/s) and worth it for what is kept.
  TraceWriter(const std::string& path, const nlohmann::json& metadata, int level = default_level);
  ~TraceWriter();

  // Returns its index: 0, 1, 2, ...
  std::uint32_t add_static(const StaticInstruction& instruction);

  // Before the first instructions, once at most.
  void set_checkpoint(const Checkpoint& checkpoint);

  // Appends. Instructions must be of indices that add_static() has given, their references lie
  // one after another, events are sorted; copies and devices stand in the order of their events.
  void add(const Chunk& chunk);

  // Instead of what the constructor was given; until finish().
  void set_metadata(const nlohmann::json& metadata);

  const Totals& totals() const;

  // The last call.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bcisim
