// Plays a trace to a model of a core under a scheme: the traced loops of copies, or what the scheme
// has in their place.
//
// The instructions and events of a chunk reach the core in the trace's order. Where a copy begins
// that the scheme replaces, the core is given bulk instructions or another loop at once, and the
// traced instructions up to the copy's end are dropped (replaced_). Cold copies are made by taking
// their blocks out of the caches before, as a device's write would. Nothing here knows of time, so
// all models are replayed by the same code. A core has
//   execute(const StaticInstruction&, const DynamicInstruction&, const Reference* its_references)
//   copy(const BulkCopy&)
//   device(const DeviceAccess&)
//   interrupt()
#pragma once

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "format/chunk.hpp"
#include "model/bulk_copy.hpp"
#include "model/copy_loop.hpp"
#include "model/scheme.hpp"

namespace bcisim {

// The affinities of copies: the same for all, but for those of some sites.
struct AffinityChoice {
  Affinities all;
  std::unordered_map<std::uint64_t, Affinities> of_site;

  bool operator==(const AffinityChoice&) const = default;
  Affinities of(std::uint64_t site) const {
    if (of_site.empty()) return all;
    const auto found = of_site.find(site);
    return found == of_site.end() ? all : found->second;
  }
};

struct ReplayOptions {
  Scheme scheme = Scheme::traditional;
  AffinityChoice affinities;
  std::uint64_t least_copy_bytes = 1;          // copies below stay loops under every scheme
  unsigned most_copy_bytes = most_bulk_bytes;  // of one bulk instruction: 1 to most_bulk_bytes
  bool fills = false;  // replace memset and clear_page as well (the paper replaces copies alone)
  bool cold_copies = false;  // no block of a copy is in the caches when it begins
  bool operator==(const ReplayOptions&) const = default;
};

class Replay {
 public:
  explicit Replay(ReplayOptions options) : options_(std::move(options)) {}

  // The chunks of a trace, in their order.
  template <class Core>
  void play(const Chunk& chunk, const std::vector<StaticInstruction>& statics, Core& core) {
    std::uint32_t at = 0;
    for (const Event& event : chunk.events) {
      execute(chunk, statics, at, event.before, core);
      at = event.before;
      happen(chunk, event, core);
    }
    execute(chunk, statics, at, static_cast<std::uint32_t>(chunk.instructions.size()), core);
  }

 private:
  template <class Core>
  void execute(const Chunk& chunk, const std::vector<StaticInstruction>& statics,
               std::uint32_t begin, std::uint32_t end, Core& core) const {
    if (replaced_) return;
    for (std::uint32_t i = begin; i < end; ++i) {
      const DynamicInstruction& instruction = chunk.instructions[i];
      core.execute(statics[instruction.what], instruction,
                   chunk.references.data() + instruction.first_reference);
    }
  }

  template <class Core>
  void happen(const Chunk& chunk, const Event& event, Core& core) {
    switch (event.kind) {
      case Event::Kind::copy_begin: begin_copy(chunk.copies[event.index], core); break;
      case Event::Kind::copy_end: replaced_ = false; break;
      case Event::Kind::device: core.device(chunk.devices[event.index]); break;
      case Event::Kind::interrupt: core.interrupt(); break;
    }
  }

  template <class Core>
  void begin_copy(const CopyCall& call, Core& core) {
    if (call.bytes < options_.least_copy_bytes) return;
    if (call.kind == CopyKind::fill && !options_.fills) return;
    if (options_.cold_copies) {
      take_out(call.destination_pages, call.destination, call.bytes, core);
      if (call.kind != CopyKind::fill) take_out(call.source_pages, call.source, call.bytes, core);
    }
    replaced_ = replace(call, core);
  }

  // As a device that writes there would.
  template <class Core>
  static void take_out(const std::vector<std::uint64_t>& pages, std::uint64_t begin,
                       std::uint64_t bytes, Core& core) {
    for (std::uint64_t at = begin; at < begin + bytes;) {
      const std::uint64_t part = std::min(begin + bytes - at, page_bytes - at % page_bytes);
      core.device({physical_of(pages, begin, at), part, true});
      at += part;
    }
  }

  template <class Core>
  bool replace(const CopyCall& call, Core& core) const {
    if (options_.scheme == Scheme::traditional || call.kind == CopyKind::with_checksum)
      return false;
    const auto execute_one =
        [&core](const StaticInstruction& what, const DynamicInstruction& instruction,
                const Reference* references) { core.execute(what, instruction, references); };
    if (options_.scheme == Scheme::vector_loop) {
      vector_loop(call, execute_one);
    } else if (options_.scheme == Scheme::rep_movs) {
      implicit_loop(call, execute_one);
    } else {
      for_each_bulk_copy(call, options_.affinities.of(call.site), options_.most_copy_bytes,
                         [&core](const BulkCopy& copy) { core.copy(copy); });
    }
    return true;
  }

  ReplayOptions options_;
  bool replaced_ = false;  // the instructions that come belong to a copy that was made otherwise
};

}  // namespace bcisim
