// Which memory kept messages from being mapped, in the words of a report, and what to do about it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/mpi/mpi.hpp"
#include "fabric/transport/monitor.hpp"

namespace haul::cli {

// Memory of one kind and name, in the ranks that have it.
struct BufferRow {
  fabric::MemoryKind kind = fabric::MemoryKind::unknown;
  std::string name;
  std::vector<std::string> ranks;  // "0", or "pid 4711" of one that has none
  std::uint64_t sent_messages = 0, received_messages = 0, bytes = 0, largest = 0;
};
struct BufferSums {
  std::vector<BufferRow> rows;                        // the worst first
  std::uint64_t other_messages = 0, other_bytes = 0;  // of memory that endpoints did not name
};
BufferSums sum_buffers(const std::vector<const fabric::MonitorReply*>& replies);

// "the stack", "static data of a.out".
std::string memory_name(fabric::MemoryKind kind, const std::string& name);
const char* memory_key(fabric::MemoryKind kind);  // in documents
// A sentence, for a job that was run with this memory shared.
std::string memory_remedy(fabric::MemoryKind kind, SharedMemory shared);

}  // namespace haul::cli
