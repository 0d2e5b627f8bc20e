#include "preload/born/rights.hpp"

#include <algorithm>
#include <iterator>

#include "base/os/pages/mappings.hpp"
#include "base/os/pages/own_memory.hpp"
#include "preload/born/heap.hpp"

namespace haul::preload {
namespace {

struct RestrictedPages {
  std::uintptr_t begin = 0, end = 0;
  os::MemoryRights rights = os::MemoryRights::none;
};
constinit RestrictedPages restricted[256];
constinit std::size_t count = 0;

void take(const os::Mapping& mapping, void*) noexcept {
  const bool all = mapping.readable && mapping.writable;
  // (The heap's addresses that hold no allocation are private mappings without rights.)
  if (all || !mapping.shared || count == std::size(restricted) ||
      !lies_in_heap(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin))
    return;
  restricted[count++] = {mapping.begin, mapping.end,
                         mapping.readable ? os::MemoryRights::read : os::MemoryRights::none};
}

}  // namespace

void learn_rights() noexcept {
  count = 0;
  os::for_each_mapping(take, nullptr);
}

bool has_rights_of_its_own(std::uintptr_t at, std::size_t bytes) noexcept {
  return std::any_of(restricted, restricted + count, [&](const RestrictedPages& one) {
    return one.begin < at + bytes && at < one.end;
  });
}

void restore_rights(std::uintptr_t at, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t begin = std::max(at, restricted[i].begin);
    const std::uintptr_t end = std::min(at + bytes, restricted[i].end);
    if (begin < end) os::set_rights(begin, end - begin, restricted[i].rights);
  }
}

}  // namespace haul::preload
