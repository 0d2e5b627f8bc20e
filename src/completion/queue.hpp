// A completion queue: any thread posts, its owner reaps in batches, one event can be armed for
// event loops (paper 000 III-B.2).
//
// The owner reserves an entry before it submits, so whoever posts finds room: a poster takes an
// index by adding to `tail_`, fills in the entry of that index, and then stores index + 1 as the
// entry's `turn` (release). The owner takes entries in the order of their indices, from `head_` on,
// each once its turn is there (acquire); an entry that is still being filled in holds up those
// behind it. To arm, the owner clears the event, stores `armed_`, then looks at the next entry's
// turn; a poster stores the turn, then looks at `armed_` and takes it by exchange. All four are
// sequentially consistent, so either the owner sees the entry or the poster sees the arming, and
// one poster alone signals. A poster of another process may die between taking an index and storing
// the turn: post_once() repairs that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "base/os/descriptor.hpp"
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

  // Initialises a queue in zeroed memory.
  void begin() noexcept { event_.set(os::Descriptor()); }

  // Owner: takes room for one entry before its request is submitted; false if the queue is full
  // until some are reaped.
  bool reserve() noexcept;
  // Owner: gives back room that no request used.
  void cancel() noexcept {
    if (outstanding_ != 0) --outstanding_;
  }

  // Any thread, once for each reserve(). Never blocks. True if the event was armed: call signal().
  bool post(const Completion& completion) noexcept;
  // Raises the event, if there is one. Any thread of this process.
  void signal() noexcept;

  // As post(), when a poster of another process has died and may have posted the entry, or taken an
  // index and left its entry empty. In each case the entry is there once afterwards, and no index
  // stays empty. Its request has not ended, so the entry has not been reaped. Blocks for up to 100
  // ms before it takes an index for abandoned.
  bool post_once(const Completion& completion) noexcept;

  // Owner: the oldest entry that has arrived, or nullptr. Valid until pop().
  const Completion* front() const noexcept;
  void pop() noexcept { pop(head_); }
  // pop() takes the front if front() is still what it was at this position(); false if a signal
  // handler's fork has left the entry to the parent.
  std::uint64_t position() const noexcept { return head_; }
  bool pop(std::uint64_t position) noexcept;

  // Owner: makes the event on first use, and makes it again (readable, since a signal may have been
  // lost) if the program has closed it. Descriptor or -errno.
  int descriptor() noexcept;
  // Owner: clears and arms the event.
  enum class Armed : std::uint8_t {
    armed,
    entry_waits,  // an entry is there already, so it stays disarmed
    event_lost,   // not armed: the program has closed or reused the descriptor
  };
  Armed arm() noexcept;

  // Owner: entries reserved and not yet reaped.
  unsigned outstanding() const noexcept { return outstanding_; }

  // For a new owner, while nobody posts: drops what was not reaped, which was for a thread that is
  // gone, and so is its event loop.
  void abandon() noexcept;

  // The first bytes of a queue, which may read as zero without harm while no entry waits.
  static constexpr std::size_t body_bytes = capacity * 64;

  // After fork, in the child: lets go of what was posted, which is the parent's to reap, and of the
  // event, which is shared with it. `amid_submit`: a signal handler has forked, and this thread's
  // submit, which may have taken room, goes on in the child.
  void leave_to_parent(bool amid_submit) noexcept {
    abandon();
    outstanding_ = amid_submit ? 1 : 0;
  }

  // Lets go of the event, which is another process's.
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
  // From here on it is the head, which a ring at rest keeps (request/rest.hpp).
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  std::atomic<std::uint32_t> armed_{0};
  os::SharedDescriptor event_;
  alignas(64) std::uint64_t head_ = 0;
  unsigned outstanding_ = 0;
};

}  // namespace haul
