// Addresses of clients, translated.
#include "service/copying/place.hpp"

#include <algorithm>

namespace haul::service {

Location locate(Hub& hub, Client& owner, std::uint64_t address, std::size_t* length) {
  if (overflows(address, *length)) return Location{.code = Code::fault};
  const ArenaViews& arena = owner.arena;
  const std::uint64_t offset = address - arena.base();
  if (arena.open() && address >= arena.base() && offset < arena.bytes()) {
    *length = static_cast<std::size_t>(std::min<std::uint64_t>(*length, arena.bytes() - offset));
    std::byte* mapped = hub.views.pin(owner.arena, offset, length);
    if (mapped == nullptr) return Location{.code = Code::no_memory};
    return Location{.address = reinterpret_cast<std::uintptr_t>(mapped)};
  }
  if (arena.open() && address < arena.base())
    *length = static_cast<std::size_t>(std::min<std::uint64_t>(*length, arena.base() - address));
  if (owner.space == self_space) return Location{.code = Code::permission};
  return Location{Code::ok, owner.space, address};
}

std::uint64_t* arena_word(Hub& hub, Client& owner, std::uint64_t address, bool* flaw) {
  const ArenaViews& arena = owner.arena;
  const std::uint64_t offset = address - arena.base();
  *flaw = !arena.open() || address % sizeof(std::uint64_t) != 0 || address < arena.base() ||
          offset >= arena.bytes();
  if (*flaw) return nullptr;
  std::size_t length = sizeof(std::uint64_t);  // aligned, so one view holds it
  return reinterpret_cast<std::uint64_t*>(hub.views.pin(owner.arena, offset, &length));
}

}  // namespace haul::service
