#include "cli/mpi/report/fabric_buffers.hpp"

#include <algorithm>

namespace haul::cli {
namespace {

using fabric::MemoryKind;

struct KindText {
  const char* key;
  const char* words;
};
constexpr KindText kind_texts[fabric::memory_kind_count] = {
    {"unknown", "memory of an unknown kind"},
    {"stack", "the stack"},
    {"static", "static data"},
    {"heap", "malloc's small blocks"},
    {"anonymous", "malloc's large blocks or mmap()"},
    {"file", "a mapped file"},
    {"shared", "the program's shared memory"},
    {"arena", "haul's arena"},
    {"scattered", "several ranges at once"}};

const KindText& text_of(MemoryKind kind) {
  return kind_texts[static_cast<std::size_t>(kind)];
}

std::string rank_name(const fabric::MonitorReply& reply) {
  return reply.rank >= 0 ? std::to_string(reply.rank) : "pid " + std::to_string(reply.pid);
}

void add_buffer(std::vector<BufferRow>* rows, const fabric::SlowBuffer& buffer,
                const std::string& rank) {
  const auto kind = static_cast<MemoryKind>(buffer.kind);
  auto row = std::find_if(rows->begin(), rows->end(), [&](const BufferRow& one) {
    return one.kind == kind && one.name == buffer.name;
  });
  if (row == rows->end()) {
    row = rows->insert(rows->end(), BufferRow());
    row->kind = kind;
    row->name = buffer.name;
  }
  if (std::find(row->ranks.begin(), row->ranks.end(), rank) == row->ranks.end())
    row->ranks.push_back(rank);
  row->sent_messages += buffer.sent_messages;
  row->received_messages += buffer.received_messages;
  row->bytes += buffer.bytes;
  row->largest = std::max(row->largest, buffer.largest);
}

// How to come by memory that can be mapped.
std::string allocate_it(SharedMemory shared) {
  switch (shared) {
    case SharedMemory::of_malloc:
      return "allocate the buffer (malloc, new, ALLOCATABLE), as --memory=shared has such memory "
             "mapped";
    case SharedMemory::of_mpi: return "take the buffer from MPI_Alloc_mem()";
    case SharedMemory::none: break;
  }
  return "allocate the buffer (malloc, new, ALLOCATABLE) and run with --memory=shared, or take it "
         "from MPI_Alloc_mem() and run with --alloc-mem";
}

}  // namespace

BufferSums sum_buffers(const std::vector<const fabric::MonitorReply*>& replies) {
  BufferSums sums;
  for (const fabric::MonitorReply* reply : replies) {
    for (std::uint32_t i = 0; i < reply->slow_count; ++i)
      add_buffer(&sums.rows, reply->slow[i], rank_name(*reply));
    sums.other_messages += reply->slow_others.sent_messages + reply->slow_others.received_messages;
    sums.other_bytes += reply->slow_others.bytes;
  }
  for (BufferRow& row : sums.rows) {
    // By their numbers: a shorter name is a smaller one.
    std::sort(row.ranks.begin(), row.ranks.end(), [](const std::string& a, const std::string& b) {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
  }
  std::stable_sort(sums.rows.begin(), sums.rows.end(),
                   [](const BufferRow& a, const BufferRow& b) { return a.bytes > b.bytes; });
  return sums;
}

std::string memory_name(MemoryKind kind, const std::string& name) {
  std::string words = text_of(kind).words;
  if (name.empty()) return words;
  return kind == MemoryKind::static_data ? words + " of " + name : words + " (" + name + ")";
}

const char* memory_key(MemoryKind kind) {
  return text_of(kind).key;
}

std::string memory_remedy(MemoryKind kind, SharedMemory shared) {
  const bool of_malloc = shared == SharedMemory::of_malloc;
  switch (kind) {
    case MemoryKind::stack:
    case MemoryKind::static_data: return "always private to its process; " + allocate_it(shared);
    case MemoryKind::heap:
      if (!of_malloc) break;
      return "libc's, as the block was smaller than HAUL_MEMORY_SHARED_FROM_BYTES (64 KiB) or haul "
             "had no room; allocate larger blocks, or set that lower";
    case MemoryKind::anonymous:
      if (!of_malloc) break;
      return "from mmap() or a malloc of the program's own, or haul had no room; allocate it by "
             "libc's malloc()";
    case MemoryKind::file:
      return "a file's pages are not haul's to pass on; use a buffer instead: " +
             allocate_it(shared);
    case MemoryKind::shared:
      return "haul has not made it, so it cannot pass it on; take it from MPI_Alloc_mem() or "
             "MPI_Win_allocate() and run with --alloc-mem";
    case MemoryKind::arena:
      return "it could have been mapped, and was not; `haul explain --mpi -- COMMAND` says what is "
             "missing";
    case MemoryKind::scattered:
      return "only one range can be mapped; send contiguous data, or pack it first";
    case MemoryKind::unknown:
    case MemoryKind::count_:
      return "gone when it was looked at, or /proc/self/maps cannot be read; " +
             allocate_it(shared);
  }
  return "private to its process; run with --memory=shared, which has malloc's blocks of 64 KiB "
         "and "
         "more mapped";
}

}  // namespace haul::cli
