// A completion queue: any thread posts, its owner reaps in batches, one event can be armed for
// event loops (paper 000 III-B.2).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/descriptor.hpp"
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
  void begin() noexcept { event_.set(os::Descriptor()); }

  // Owner: takes room for one entry before its request is submitted; false if the queue is full
  // until reaped.
  bool reserve() noexcept;
  // Owner: gives back room that no request used.
  void cancel() noexcept {
    if (outstanding_ != 0) --outstanding_;
  }

  // Any thread, once for each reserve(). Never blocks. True if the event was armed: signal() it.
  bool post(const Completion& completion) noexcept;
  // Raises the event, if there is one. Any thread of this process.
  void signal() noexcept;

  // As post(), after a poster of another process has died: it may have posted the entry, or have
  // taken a place and left it empty. Then too the entry is there once, and no place stays empty.
  // Its request has not ended, so it has not been reaped. Blocks for up to 100 ms before it takes a
  // place for left.
  bool post_once(const Completion& completion) noexcept;

  // Owner: the oldest entry that has arrived, or nullptr. Valid until pop().
  const Completion* front() const noexcept;
  void pop() noexcept { pop(head_); }
  // The same if front() is still what it was at this position(); false if a signal handler's fork
  // has left the entry to the parent.
  std::uint64_t position() const noexcept { return head_; }
  bool pop(std::uint64_t position) noexcept;

  // Owner: makes the event on first use, and anew (readable, for a signal may have been lost) where
  // the program has closed it. Descriptor or -errno.
  int descriptor() noexcept;
  // Owner: clears and arms the event.
  enum class Armed : std::uint8_t {
    armed,
    entry_waits,  // already, so it stays disarmed
    event_lost,   // likewise: the program has closed the descriptor, or put a file in its place
  };
  Armed arm() noexcept;

  // Owner: entries reserved and not yet reaped.
  unsigned outstanding() const noexcept { return outstanding_; }

  // A new owner, while nobody posts: what was not reaped was for a thread that is gone, and so is
  // its event loop.
  void abandon() noexcept;

  // What of a queue in which nothing waits may read as zero, without harm: its first bytes.
  static constexpr std::size_t body_bytes = capacity * 64;

  // After fork, in the child: what was posted is the parent's to reap, and the event is shared with
  // it: let go of both. `amid_submit`: a signal handler has forked, and this thread's submit, which
  // may have taken room, goes on in the child.
  void leave_to_parent(bool amid_submit) noexcept {
    abandon();
    outstanding_ = amid_submit ? 1 : 0;
  }

  // The event is another process's: let go of it.
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
  // True if the event was armed.
  bool fill(std::uint64_t index, const Completion& completion) noexcept;
  bool disarm() noexcept;

  static_assert(sizeof(Entry) * capacity == body_bytes);
  Entry entries_[capacity];
  // What follows is the head, which a ring at rest keeps (request/rest.hpp).
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint32_t> armed_{0};
  os::SharedDescriptor event_;
  alignas(64) std::uint64_t head_ = 0;
  unsigned outstanding_ = 0;
};

}  // namespace haul
