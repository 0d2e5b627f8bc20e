#include "convert/cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "convert/block_cache.hpp"
#include "format/layout.hpp"
#include "format/reader.hpp"

namespace bcisim {

namespace {

class Cutter {
 public:
  Cutter(const CutOptions& options, TraceReader& reader, TraceWriter& writer)
      : options_(options), reader_(reader), writer_(writer) {
    if (reader.checkpoint()) cache_.fill(*reader.checkpoint());
  }

  // Returns false when the piece is complete.
  bool add(const Chunk& chunk);
  CutSummary summary() const { return summary_; }
  const std::unordered_set<std::uint64_t>& sites() const { return sites_; }

 private:
  void skip(const Chunk& chunk, const DynamicInstruction& instruction);
  void keep(const Chunk& chunk, DynamicInstruction instruction);
  void skip(const Chunk& chunk, const Event& event);
  void keep(const Chunk& chunk, Event event);
  bool skipping();
  bool complete() const { return summary_.kept >= options_.keep && !copy_open_; }
  void note(const Event& event) {
    if (event.kind == Event::Kind::copy_begin) copy_open_ = true;
    if (event.kind == Event::Kind::copy_end) copy_open_ = false;
  }

  const CutOptions& options_;
  TraceReader& reader_;
  TraceWriter& writer_;
  BlockCache cache_;
  CutSummary summary_;
  Chunk kept_;
  bool skipping_ = true, copy_open_ = false;
  static constexpr std::uint32_t none = 0xffffffff;
  std::vector<std::uint32_t> indices_;  // in the new trace, by those in the old
  std::unordered_set<std::uint64_t> sites_;
};

// Before everything that is added: is it still to be skipped? The checkpoint is written when not.
bool Cutter::skipping() {
  if (!skipping_ || summary_.skipped < options_.skip || copy_open_) return skipping_;
  skipping_ = false;
  const Checkpoint checkpoint = cache_.checkpoint();
  summary_.blocks = checkpoint.blocks.size();
  writer_.set_checkpoint(checkpoint);
  return false;
}

bool Cutter::add(const Chunk& chunk) {
  kept_.clear();
  indices_.resize(reader_.statics().size(), none);
  std::size_t event = 0;
  for (std::size_t i = 0; i <= chunk.instructions.size() && !complete(); ++i) {
    for (; event < chunk.events.size() && chunk.events[event].before == i && !complete(); ++event) {
      const bool skipped = skipping();
      note(chunk.events[event]);
      skipped ? skip(chunk, chunk.events[event]) : keep(chunk, chunk.events[event]);
    }
    if (i == chunk.instructions.size() || complete()) break;
    skipping() ? skip(chunk, chunk.instructions[i]) : keep(chunk, chunk.instructions[i]);
  }
  writer_.add(kept_);
  return !complete();
}

void Cutter::skip(const Chunk& chunk, const DynamicInstruction& instruction) {
  const StaticInstruction& what = reader_.statics()[instruction.what];
  const std::uint64_t into = what.address % layout::page_bytes;
  cache_.load(what.physical_page * layout::page_bytes + into,
              std::min<std::uint64_t>(what.bytes, layout::page_bytes - into));
  for (unsigned i = 0; i < instruction.references; ++i) {
    const Reference& reference = chunk.references[instruction.first_reference + i];
    reference.is_store ? cache_.store(reference.physical, reference.bytes)
                       : cache_.load(reference.physical, reference.bytes);
  }
  ++summary_.skipped;
}

void Cutter::skip(const Chunk& chunk, const Event& event) {
  if (event.kind != Event::Kind::device) return;
  const DeviceAccess& access = chunk.devices[event.index];
  if (access.writes) cache_.invalidate(access.physical, access.bytes);
}

void Cutter::keep(const Chunk& chunk, DynamicInstruction instruction) {
  std::uint32_t& index = indices_[instruction.what];
  if (index == none) index = writer_.add_static(reader_.statics()[instruction.what]);
  const auto first = chunk.references.begin() + instruction.first_reference;
  instruction.what = index;
  instruction.first_reference = static_cast<std::uint32_t>(kept_.references.size());
  kept_.references.insert(kept_.references.end(), first, first + instruction.references);
  kept_.instructions.push_back(instruction);
  ++summary_.kept;
}

void Cutter::keep(const Chunk& chunk, Event event) {
  if (event.kind == Event::Kind::copy_begin) {
    kept_.copies.push_back(chunk.copies[event.index]);
    sites_.insert(kept_.copies.back().site);
    event.index = static_cast<std::uint32_t>(kept_.copies.size() - 1);
  } else if (event.kind == Event::Kind::device) {
    kept_.devices.push_back(chunk.devices[event.index]);
    event.index = static_cast<std::uint32_t>(kept_.devices.size() - 1);
  }
  event.before = static_cast<std::uint32_t>(kept_.instructions.size());
  kept_.events.push_back(event);
}

nlohmann::json metadata_of_piece(const TraceReader& reader, const Cutter& cutter) {
  nlohmann::json metadata = reader.metadata();
  metadata["cut"] = {{"skipped", cutter.summary().skipped}, {"kept", cutter.summary().kept}};
  const auto symbols = metadata.find("symbols");
  if (symbols == metadata.end() || !symbols->is_object()) return metadata;
  nlohmann::json needed = nlohmann::json::object();
  for (const std::uint64_t site : cutter.sites()) {
    const std::string key = fmt::format("{:#x}", site);
    if (symbols->contains(key)) needed[key] = (*symbols)[key];
  }
  *symbols = needed;
  return metadata;
}

}  // namespace

CutSummary cut(const CutOptions& options) {
  TraceReader reader(options.input);
  const std::uint64_t instructions = reader.totals().instructions;
  if (instructions == 0)
    throw TraceError(options.input + ": has no instructions; name a trace that has");
  if (instructions <= options.skip) {
    throw TraceError(fmt::format("{}: has {} instructions, none behind the {} to skip; skip fewer",
                                 options.input, instructions, options.skip));
  }
  TraceWriter writer(options.output, reader.metadata(), options.level);
  Cutter cutter(options, reader, writer);
  Chunk chunk;
  while (reader.next(chunk) && cutter.add(chunk)) {
  }
  CutSummary summary = cutter.summary();
  if (summary.kept == 0) {
    throw TraceError(
        fmt::format("{}: behind the {} instructions to skip is the rest of a copy alone, and a "
                    "copy that has begun is skipped whole; skip fewer",
                    options.input, options.skip));
  }
  writer.set_metadata(metadata_of_piece(reader, cutter));
  writer.finish();
  summary.file_bytes = std::filesystem::file_size(options.output);
  return summary;
}

}  // namespace bcisim
