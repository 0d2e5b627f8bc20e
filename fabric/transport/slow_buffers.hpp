// Which memory kept large messages from being mapped: kept while a report is wanted, by the mapping
// that the buffer lay in when it was first seen, as it may be gone when the report is made.
//
// Threads: note() is called under the endpoint's lock; fill() by the control thread beside it. An
// entry is complete when used_ counts it (release, acquire); its counters are relaxed.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace haul::fabric {

enum class MemoryKind : std::uint8_t {
  unknown,      // it could not be found out
  stack,        // of the thread that was in the call
  static_data,  // of the program or of a library
  heap,         // malloc()'s small blocks
  anonymous,    // malloc()'s large blocks, or mmap()
  file,         // a file is mapped there
  shared,       // shared memory of the program's or its MPI's, which haul does not know
  arena,        // haul's, but the peer did not map it
  scattered,    // several ranges
  count_
};
inline constexpr std::size_t memory_kind_count = static_cast<std::size_t>(MemoryKind::count_);

// As a report carries it.
struct SlowBuffer {
  std::uint8_t kind = 0;             // a MemoryKind
  char name[63] = {};                // of the file or module, without its folder; "" for none
  std::uint64_t begin = 0, end = 0;  // where the messages lay
  std::uint64_t sent_messages = 0, received_messages = 0;
  std::uint64_t bytes = 0, largest = 0;
};

class SlowBuffers {
 public:
  // A message of `bytes` bytes was sent from, or received into, these ranges. A new mapping is
  // looked up: /proc/self/maps is read, which takes some 100 us.
  void note(const iovec* pieces, std::size_t count, std::size_t bytes, bool sent) noexcept;
  // The worst ones first, `room` at most; returns how many. What is left out is added to *others.
  std::size_t fill(SlowBuffer* worst, std::size_t room, SlowBuffer* others) const noexcept;

 private:
  struct Entry {
    MemoryKind kind = MemoryKind::unknown;
    char name[sizeof SlowBuffer::name] = {};
    std::uintptr_t from = 0, to = 0;  // the mapping, or the module's segment; 0: it has gone
    std::uintptr_t seen[2] = {};      // where messages lay that were looked up last
    std::atomic<std::uintptr_t> begin{0}, end{0};
    std::atomic<std::uint64_t> sent{0}, received{0}, bytes{0}, largest{0};

    void count(std::uintptr_t at, std::size_t span, std::size_t message, bool was_sent) noexcept;
    SlowBuffer shown() const noexcept;
  };
  // At 100 us or some more each, a program loses 50 ms at most by them.
  static constexpr std::size_t capacity = 32, most_looks = 256;
  Entry* known(std::uintptr_t at, bool scattered) noexcept;
  Entry* entry_of(std::uintptr_t at, bool scattered) noexcept;

  Entry entries_[capacity];
  std::atomic<std::size_t> used_{0};
  std::size_t last_ = 0, looks_ = 0;
  Entry others_;  // found no room
};

}  // namespace haul::fabric
