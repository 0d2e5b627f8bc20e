// A stretch of a trace, decoded, as models take it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/event.hpp"
#include "format/instruction.hpp"

namespace bcisim {

struct Chunk {
  std::vector<DynamicInstruction> instructions;
  std::vector<Reference> references;
  // By `before`; those of equal `before` in the order in which they happened.
  std::vector<Event> events;
  std::vector<CopyCall> copies;
  std::vector<DeviceAccess> devices;

  void clear() {
    instructions.clear();
    references.clear();
    events.clear();
    copies.clear();
    devices.clear();
  }
};
// Chunks are small enough for a processor's cache. A copy may begin in one and end in a later one.
inline constexpr std::size_t most_instructions_of_chunk = 4096;

// What the caches held when the trace began, for traces too short to warm them: every block that a
// cache of 8 MB with true LRU would hold, the least recently used first.
struct Checkpoint {
  struct Block {
    std::uint64_t number = 0;  // physical address / 64
    bool dirty = false;
  };
  std::vector<Block> blocks;
};

}  // namespace bcisim
