#include "study/profile.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "format/reader.hpp"

namespace bcisim {
namespace {

constexpr std::uint64_t kernel_begins = std::uint64_t{1} << 63;

class Profiler {
 public:
  void play(const Chunk& chunk, const std::vector<StaticInstruction>& statics) {
    std::uint32_t at = 0;
    for (const Event& event : chunk.events) {
      for (; at < event.before; ++at) execute(chunk, statics, at);
      happen(chunk, event);
    }
    for (; at < chunk.instructions.size(); ++at) execute(chunk, statics, at);
  }

  Profile finish(const nlohmann::json& metadata) {
    const nlohmann::json symbols = metadata.value("symbols", nlohmann::json::object());
    for (auto& [address, site] : sites_) {
      site.name = symbols.value(fmt::format("{:#x}", address), std::string());
      profile_.sites.push_back(site);
    }
    std::sort(profile_.sites.begin(), profile_.sites.end(),
              [](const ProfiledSite& a, const ProfiledSite& b) {
                return a.bytes != b.bytes ? a.bytes > b.bytes : a.address < b.address;
              });
    return std::move(profile_);
  }

 private:
  void execute(const Chunk& chunk, const std::vector<StaticInstruction>& statics,
               std::uint32_t index) {
    const DynamicInstruction& instruction = chunk.instructions[index];
    const StaticInstruction& what = statics[instruction.what];
    ++profile_.instructions;
    if (what.address >= kernel_begins) ++profile_.kernel_instructions;
    if (what.kind == InstructionClass::branch) ++profile_.branches;
    if (in_copy_) ++profile_.copy_instructions;
    bool depends = false;
    for (unsigned i = 0; i < instruction.references; ++i) {
      const Reference& reference = chunk.references[instruction.first_reference + i];
      ++(reference.is_store ? profile_.stores : profile_.loads);
      depends = depends || touches(reference);
    }
    if (in_copy_) return;
    ++since_copy_;
    if (depends && waits_for_dependent_) {
      waits_for_dependent_ = false;
      ++profile_.with_dependent;
      profile_.to_dependent += since_copy_;
    }
  }

  bool touches(const Reference& reference) const {
    const auto meets = [&reference](std::uint64_t begin, std::uint64_t bytes) {
      return reference.address < begin + bytes && begin < reference.address + reference.bytes;
    };
    return meets(last_.destination, last_.bytes) ||
           (reference.is_store && last_.kind != CopyKind::fill && meets(last_.source, last_.bytes));
  }

  void happen(const Chunk& chunk, const Event& event) {
    switch (event.kind) {
      case Event::Kind::copy_begin: begin_copy(chunk.copies[event.index]); break;
      case Event::Kind::copy_end:
        if (!in_copy_) break;
        in_copy_ = false;
        since_copy_ = 0;
        waits_for_dependent_ = true;
        break;
      case Event::Kind::interrupt: ++profile_.interrupts; break;
      case Event::Kind::device: {
        const DeviceAccess& access = chunk.devices[event.index];
        (access.writes ? profile_.device_written_bytes : profile_.device_read_bytes) +=
            access.bytes;
        break;
      }
    }
  }

  void begin_copy(const CopyCall& call) {
    auto& [calls, its_bytes] = profile_.by_kind[call.kind];
    ++calls;
    its_bytes += call.bytes;
    ProfiledSite& site = sites_[call.site];
    site.address = call.site;
    site.kind = call.kind;
    ++site.copies;
    site.bytes += call.bytes;
    if (call.kind == CopyKind::fill || call.kind == CopyKind::with_checksum) return;
    if (profile_.copies != 0) {
      ++profile_.gaps;
      if (since_copy_ > 5000) ++profile_.gaps_above_5000;
      if (since_copy_ < 2000) ++profile_.gaps_below_2000;
    }
    in_copy_ = true;
    last_ = call;
    ++profile_.copies;
    profile_.copy_bytes += call.bytes;
    ++profile_.by_size[static_cast<unsigned>(std::bit_width(call.bytes)) - 1];
  }

  Profile profile_;
  std::unordered_map<std::uint64_t, ProfiledSite> sites_;
  CopyCall last_;
  bool in_copy_ = false, waits_for_dependent_ = false;
  std::uint64_t since_copy_ = 0;
};

}  // namespace

Profile profile_of(const std::string& trace) {
  TraceReader reader(trace);
  Profiler profiler;
  for (Chunk chunk; reader.next(chunk);) profiler.play(chunk, reader.statics());
  return profiler.finish(reader.metadata());
}

}  // namespace bcisim
