// The pinned slots through which pageable memory goes to a GPU or comes from it: a ring, in which
// each slot is used in the order in which it was taken, by the CPU and by the GPU's copy engine one
// after the other. While the one is at slot n, the other is at slot n + 1.
//
// A slot is taken by its first worker, passes to the second, and is free again when that has ended:
// taken >= passed >= ended, three counts that say all. Who the first is depends on the direction
// (gpu_stream.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "devices/cuda/driver.hpp"

namespace haul::cuda {

struct StagingSlot {
  unsigned char* memory = nullptr;
  Event event = nullptr;  // of the GPU's part
  unsigned copy = 0;      // whose bytes: a number of the stream's
  std::size_t offset = 0, bytes = 0;
  bool arrived = false;  // from the GPU
  // The CPU has done its part: 1. It is stored by whatever thread does that (release).
  std::atomic<std::uint32_t> done{0};
};

class StagingSlots {
 public:
  static constexpr unsigned most = 16;

  // While none is taken; so many have memory and an event.
  void set_count(unsigned count) { count_.store(count, std::memory_order_relaxed); }
  // Any thread.
  unsigned count() const { return count_.load(std::memory_order_relaxed); }
  StagingSlot& at(unsigned index) { return slots_[index]; }

  bool has_free() const { return taken_ - ended_ < count(); }
  // Are all of them with their first worker, or with their second?
  bool all_at_first() const { return taken_ - passed_ == count(); }
  bool all_at_second() const { return passed_ - ended_ == count(); }
  bool idle() const { return taken_ == ended_; }
  // Takes the next one. Its index; there is a free one.
  unsigned take() {
    const unsigned index = static_cast<unsigned>(taken_++ % count());
    slots_[index].arrived = false;
    slots_[index].done.store(0, std::memory_order_relaxed);
    return index;
  }

  // The one that passes to its second worker next, and the one that ends next; nullptr: none has
  // been taken, or has passed.
  StagingSlot* to_pass() { return passed_ < taken_ ? &slots_[passed_ % count()] : nullptr; }
  StagingSlot* to_end() { return ended_ < passed_ ? &slots_[ended_ % count()] : nullptr; }
  unsigned index_of(const StagingSlot& slot) const { return static_cast<unsigned>(&slot - slots_); }
  void pass() { ++passed_; }
  void end() { ++ended_; }

 private:
  StagingSlot slots_[most];
  std::atomic<unsigned> count_{0};
  std::uint64_t taken_ = 0, passed_ = 0, ended_ = 0;
};

}  // namespace haul::cuda
