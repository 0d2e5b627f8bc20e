// Where bytes of a client lie for this process: mapped here, or in the client's own memory, which
// only the kernel reaches.
#pragma once

#include <cstddef>
#include <cstdint>

#include "service/clients/hub.hpp"

namespace haul::service {

struct Location {
  Code code = Code::ok;
  Space space = self_space;  // self_space: mapped, at `address` here until the views are unpinned
  std::uintptr_t address = 0;
};

// The place of [address, address + *length) of `owner`; *length is shortened to a part of one kind
// that is contiguous. permission: the memory is private, and the kernel does not let the service
// reach it; no_memory: there is none for a mapping.
Location locate(Hub& hub, Client& owner, std::uint64_t address, std::size_t* length);

// A pointer to the 8 bytes at `address`, which must be aligned and in the client's arena; else
// nullptr with *flaw true. nullptr and *flaw false: no memory. Valid until the views are unpinned.
std::uint64_t* arena_word(Hub& hub, Client& owner, std::uint64_t address, bool* flaw);

}  // namespace haul::service
