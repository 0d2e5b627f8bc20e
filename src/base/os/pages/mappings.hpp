// What is mapped where in this process: /proc/self/maps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::os {

struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  bool readable = false, writable = false, shared = false;
  bool has_file = false;     // and its name is one
  std::uint64_t offset = 0;  // of `begin` in its file
  char name[256] = {};       // its file's path, "[heap]", ...; may be cut off; "" for none
};

// Calls act(mapping, context) for each mapping, in order. False if they cannot be read. Calls no
// malloc, takes no lock.
using MappingAct = void (*)(const Mapping& mapping, void* context);
bool for_each_mapping(MappingAct act, void* context) noexcept;

}  // namespace haul::os
