#include "model/stepped/engines.hpp"

#include <algorithm>

namespace bcisim {

Engines::Engines(const Parameters& parameters, const SchemeTraits& traits, Memory& memory,
                 Tlb& data_tlb, Result& result, Observer& observer)
    : parameters_(parameters),
      traits_(traits),
      memory_(memory),
      surroundings_{parameters_, traits_, memory_, data_tlb, result, page_fault_, observer} {}

void Engines::add(std::uint64_t number, const BulkCopy& copy) {
  runs_.push_back(std::make_unique<CopyRun>(number, copy, surroundings_));
}

const CopyRun* Engines::find(std::uint64_t number) const {
  for (const auto& run : runs_) {
    if (run->number() == number) return run.get();
  }
  return nullptr;
}

bool Engines::start(std::uint64_t number, Cycle now) {
  for (const auto& run : runs_) {
    if (run->number() == number) {
      if (run->is_started()) return false;
      run->start(now);
      step(*run, now);
      return true;
    }
    if (!traits_.many_engines) return false;  // an older one is not done
  }
  return false;
}

bool Engines::step(CopyRun& run, Cycle now) {
  return run.step(
      now, [this, number = run.number()](std::uint64_t physical, unsigned bytes, bool is_store) {
        return is_pending(number, physical, bytes, is_store);
      });
}

bool Engines::step(Cycle now) {
  if (runs_.empty()) return false;
  bool active = false, one_done = false;
  for (const auto& run : runs_) {
    if (!run->is_started()) break;
    active = step(*run, now) || active;
    one_done = one_done || run->is_done();
  }
  if (one_done) {
    std::erase_if(runs_, [](const auto& run) { return run->is_done(); });
    last_end_ = now;
  }
  if (active && !interventions_.empty()) {
    interventions_.release([this](const Intervention& one) { return is_pending(one); },
                           [this, now](const Intervention& one) { process(one, now); });
  }
  return active;
}

Cycle Engines::next_event(Cycle now) const {
  Cycle next = never;
  for (const auto& run : runs_) next = std::min(next, run->next_event(now));
  return next;
}

bool Engines::can_retire(std::uint64_t number) const {
  const CopyRun* const run = find(number);
  return run == nullptr || (traits_.retires_early && run->is_validated());
}

bool Engines::is_started(std::uint64_t number) const {
  const CopyRun* const run = find(number);
  return run == nullptr || run->is_started();
}

bool Engines::is_pending(std::uint64_t number, std::uint64_t physical, unsigned bytes,
                         bool is_store) const {
  for (const auto& run : runs_) {
    if (run->number() >= number) return false;
    if (run->is_pending(physical, bytes, is_store)) return true;
  }
  return false;
}

// The blocks of [first, last], or, where these are many, those that are in caches or in copies.
std::vector<std::uint64_t> Engines::reached(std::uint64_t first, std::uint64_t last) const {
  constexpr std::uint64_t many = 4096;
  std::vector<std::uint64_t> blocks;
  const auto add = [&](std::uint64_t block) {
    if (block >= first && block <= last) blocks.push_back(block);
  };
  if (last - first < many) {
    for (std::uint64_t block = first; block <= last; ++block) add(block);
    return blocks;
  }
  memory_.for_each_there(add);
  for (const auto& run : runs_) {
    const BulkCopy& copy = run->copy();
    for (unsigned offset = 0; offset < copy.bytes; ++offset) {
      add(physical_of(copy.destination_pages, copy.destination, copy.destination + offset) /
          parameters_.block_bytes);
      if (copy.is_fill) continue;
      add(physical_of(copy.source_pages, copy.source, copy.source + offset) /
          parameters_.block_bytes);
    }
  }
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

void Engines::device(const DeviceAccess& access, Cycle now) {
  if (access.bytes == 0) return;
  const std::uint64_t first = access.physical / parameters_.block_bytes;
  const std::uint64_t last = (access.physical + access.bytes - 1) / parameters_.block_bytes;
  for (const std::uint64_t block : reached(first, last)) {
    const std::uint64_t begin = std::max(access.physical, block * parameters_.block_bytes);
    const std::uint64_t end =
        std::min(access.physical + access.bytes, (block + 1) * parameters_.block_bytes);
    interventions_.request(
        {begin, static_cast<unsigned>(end - begin), access.writes},
        [this](const Intervention& one) { return is_pending(one); },
        [this, now](const Intervention& one) { process(one, now); });
  }
}

}  // namespace bcisim
