// A completion queue: any thread posts, its owner reaps in batches, one eventfd can be armed for
// event loops (paper 000 III-B.2).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/error.hpp"
#include "completion/ticket.hpp"

namespace haul {

using CompletionCallback = void (*)(const void* completion, void* context);

struct Completion {
  Ticket ticket;
  std::uint64_t user_data = 0;
  std::uint64_t good_bytes = 0;
  Code code = Code::ok;
  CompletionCallback callback = nullptr;
  void* context = nullptr;
};

class CompletionQueue {
 public:
  static constexpr unsigned capacity = 1024;

  // Brings a queue to life in zeroed memory.
  void begin() noexcept { event_fd_.store(-1, std::memory_order_relaxed); }

  // Owner: takes room for one entry before its request is submitted; false if the queue is full
  // until reaped.
  bool reserve() noexcept;
  // Owner: gives back room that no request used.
  void cancel() noexcept { --outstanding_; }

  // Any thread, once for each reserve(). Never blocks. True if the eventfd was armed: signal() it.
  bool post(const Completion& completion) noexcept;
  // Writes the eventfd, if there is one. Any thread of this process.
  void signal() noexcept;

  // As post(), after a poster of another process has died: it may have posted the entry, or have
  // taken a place and left it empty. Then too the entry is there once, and no place stays empty.
  // Its request has not ended, so it has not been reaped. Blocks for up to 100 ms before it takes a
  // place for left.
  bool post_once(const Completion& completion) noexcept;

  // Owner: the oldest entry that has arrived, or nullptr. Valid until pop().
  const Completion* front() const noexcept;
  void pop() noexcept;

  // Owner: makes the eventfd on first use. Descriptor or -errno.
  int descriptor() noexcept;
  // Owner: clears and arms the eventfd; true if an entry waits already (then it stays disarmed).
  bool arm() noexcept;

  // Owner: entries reserved and not yet reaped.
  unsigned outstanding() const noexcept { return outstanding_; }

  // A new owner, while nobody posts: what was not reaped was for a thread that is gone, and so is
  // its event loop.
  void abandon() noexcept;

  // After fork, in the child: the eventfd is shared with the parent, so let go of it.
  void forget_descriptor() noexcept;

 private:
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> turn{0};  // index + 1 once the entry of that index is filled in
    Completion completion;
  };

  static bool filled(const Entry& entry, std::uint64_t index) noexcept {
    // Acquire: pairs with fill().
    return entry.turn.load(std::memory_order_acquire) >= index + 1;
  }
  // True if the eventfd was armed.
  bool fill(std::uint64_t index, const Completion& completion) noexcept;
  bool disarm() noexcept;

  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint32_t> armed_{0};
  std::atomic<int> event_fd_{-1};
  alignas(64) std::uint64_t head_ = 0;
  unsigned outstanding_ = 0;
  Entry entries_[capacity];
};

}  // namespace haul
