// libFuzzer on what a process may tell `haul run --mpi --report` and `haul top`: a packet that is
// accepted is within its bounds and printable, and can be added up.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cli/mpi/report/fabric_buffers.hpp"
#include "cli/mpi/report/fabric_reply.hpp"

namespace {

using haul::fabric::MonitorReply;

void require(bool holds) {
  if (!holds) std::abort();
}

void require_text(const std::string& text) {
  for (const char c : text) require(c >= ' ' && c <= '~');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = std::make_unique<MonitorReply>();
  require(!haul::cli::check_reply(data, size, read.get()) || size == sizeof *read);
  // A head that is accepted, the input's bytes at a place of its choice, and its last one
  // elsewhere.
  const auto packet = std::make_unique<MonitorReply>();
  auto* bytes = reinterpret_cast<std::uint8_t*>(packet.get());
  constexpr std::size_t head = offsetof(MonitorReply, pid);
  std::size_t at = 0;
  if (size >= 3) {
    at = (data[0] | std::size_t{data[1]} << 8) % (sizeof *packet - head);
    std::memset(bytes + head, data[2], sizeof *packet - head);
    data += 3;
    size -= 3;
  }
  for (std::size_t i = 0; i < size; ++i) bytes[head + (at + i) % (sizeof *packet - head)] = data[i];
  require(haul::cli::check_reply(packet.get(), sizeof *packet, read.get()));
  require(read->peer_count <= MonitorReply::peer_capacity && read->rank >= -1);
  for (const auto& peer : read->peer) require_text(peer.why);
  for (const auto& row : haul::cli::sum_buffers({read.get(), read.get()}).rows) {
    for (const std::string& rank : row.ranks) require_text(rank);
    require_text(haul::cli::memory_name(row.kind, row.name));
    require(!haul::cli::memory_remedy(row.kind, haul::cli::SharedMemory::none).empty());
    require(*haul::cli::memory_key(row.kind) != '\0');
  }
  return 0;
}
