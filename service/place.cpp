// Addresses of clients, translated.
#include "service/place.hpp"

#include <algorithm>

namespace haul::service {

Place locate(Node& node, Client& owner, std::uint64_t address, std::size_t* length) {
  if (overflows(address, *length)) return Place{.code = Code::fault};
  const Window& arena = owner.arena;
  const std::uint64_t offset = address - arena.base();
  if (arena.open() && address >= arena.base() && offset < arena.bytes()) {
    *length = static_cast<std::size_t>(std::min<std::uint64_t>(*length, arena.bytes() - offset));
    std::byte* mapped = node.views.pin(owner.arena, offset, length);
    if (mapped == nullptr) return Place{.code = Code::no_memory};
    return Place{.address = reinterpret_cast<std::uintptr_t>(mapped)};
  }
  if (arena.open() && address < arena.base())
    *length = static_cast<std::size_t>(std::min<std::uint64_t>(*length, arena.base() - address));
  if (owner.space == self_space) return Place{.code = Code::permission};
  return Place{Code::ok, owner.space, address};
}

std::uint64_t* arena_word(Node& node, Client& owner, std::uint64_t address, bool* flaw) {
  const Window& arena = owner.arena;
  const std::uint64_t offset = address - arena.base();
  *flaw = !arena.open() || address % sizeof(std::uint64_t) != 0 || address < arena.base() ||
          offset >= arena.bytes();
  if (*flaw) return nullptr;
  std::size_t length = sizeof(std::uint64_t);  // aligned, so one view holds it
  return reinterpret_cast<std::uint64_t*>(node.views.pin(owner.arena, offset, &length));
}

}  // namespace haul::service
