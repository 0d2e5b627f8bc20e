// Turns records into chunks: the heart of the conversion.
//
// The stream says which instruction begins and what memory is referred to, but not whether the
// instruction completed, nor where interrupts came. Both are known when the next instruction
// begins: so one instruction is always held back, and settle() compares what it may lead to with
// what followed. If the next one can follow, the instruction is emitted; if not, an interrupt or a
// fault came, and it is emitted or dropped, depending on whether it has made the references that it
// must make. The iterations of a repeated string instruction are collected and emitted together.
// Calls of copy routines are followed by CopyTracker in the chunk that is being made, which is
// therefore not flushed while a call is open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "convert/copy_tracker.hpp"
#include "convert/places.hpp"
#include "convert/summary.hpp"
#include "format/chunk.hpp"
#include "format/pages.hpp"
#include "format/writer.hpp"

namespace bcisim {

// An instruction is known to be whole when the next one begins: one is always held back.
class Weaver {
 public:
  Weaver(Places& places, TraceWriter& writer, ConvertSummary& summary)
      : places_(places), writer_(writer), summary_(summary), tracker_(chunk_, summary) {}

  void execute(std::uint32_t place);
  // Returns false for addresses that contradict each other.
  [[nodiscard]] bool refer(const StreamRecord& record);
  void add_device(const StreamRecord& record);
  void finish();

  // Where marked copies return to; bounded.
  const std::unordered_set<std::uint64_t>& sites() const { return sites_; }

 private:
  static constexpr std::size_t most_sites = 65536;
  enum class After : std::uint8_t { follows, interrupt, restart };

  After after(const Place& place, const Place& next, bool entered) const;
  bool complete(const Place& place) const;
  bool take_off_entry();
  void repeat(const Place& place);
  void settle(const Place& next);
  void emit(bool taken);
  std::uint32_t index_of(Place& place);
  void emit_devices();
  void track(const Place& place, const Place& next, bool interrupted, bool dropped);
  void flush();

  Places& places_;
  TraceWriter& writer_;
  ConvertSummary& summary_;
  Chunk chunk_;
  CopyTracker tracker_;
  Pages pages_;
  std::unordered_set<std::uint64_t> sites_;

  // The instruction held back.
  std::uint32_t held_ = Place::none;
  std::vector<Reference> references_;
  std::size_t iteration_ = 0;  // the first reference of its latest iteration
  bool refers_to_io_ = false;
  std::vector<DeviceAccess> devices_;  // meanwhile
};

}  // namespace bcisim
