// A ring: the requests of one thread, in order of submission. Its owner publishes; movers and
// waiters claim.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "completion/queue.hpp"
#include "completion/tenancy.hpp"
#include "request/job.hpp"

namespace haul {

// Lies in private memory, or in memory that the node's service maps too (board.hpp): a whole number
// of pages, and no pointers to anything that the service follows.
//
// First its body, the slots and their like; then its head, about a page. A ring at rest
// (request/rest.hpp) has a head only: its body reads as zero.
class alignas(4096) Ring {
 public:
  static constexpr std::uint64_t slots = 256;
  static constexpr std::uint32_t segment_slots = 2048;

 private:
  Parameters parameters_[slots];
  Extras extras_[slots];
  Claims claims_[slots];
  State states_[slots];
  Watermarks watermarks_[slots];
  Segment segments_[segment_slots];

 public:
  CompletionQueue completions;  // its entries are of the body

  Ring() = delete;

  // A bit a slot: its request was published and has not ended.
  struct Unfinished {
    std::uint64_t bits[slots / 64] = {};
  };

  // ---- owner ----

  // Is there a slot for one more request? Reads the state lines only when the known free ones are
  // used up, many at once.
  bool has_room() noexcept { return credit_ != 0 || look_for_room(); }

  // The seq that the next publish() will use.
  std::uint64_t next_seq() const noexcept { return tail_.load(std::memory_order_acquire); }

  // Room for the segments of a vector: index of `count` consecutive ones, or -1 if the arena is
  // full. Belongs to the next request published.
  std::int64_t reserve_segments(std::uint32_t count) noexcept;

  // Gives back what reserve_segments() took, because nothing is published after all.
  void cancel_segments() noexcept;

  // Publishes; has_room() was true. Sets job.seq. `extras` may be nullptr.
  void publish(Job& job, const Extras* extras) noexcept;

  // Are all requests published so far finished? (Acquire.)
  bool quiet() noexcept { return first_unfinished(next_seq()) == next_seq(); }

  // ---- any thread ----

  Tenancy tenancy(std::uint64_t seq) noexcept {
    const std::uint64_t at = seq % slots;
    return Tenancy{&claims_[at], &states_[at], &watermarks_[at], seq,
                   static_cast<std::uint32_t>(seq / slots)};
  }
  const std::atomic<std::uint64_t>& state_word(std::uint64_t seq) const noexcept {
    return states_[seq % slots].word;
  }
  std::uint64_t published_seq(std::uint64_t seq) const noexcept {
    return parameters_[seq % slots].seq.load(std::memory_order_acquire);
  }
  bool read(std::uint64_t seq, Job* job) const noexcept {
    return parameters_[seq % slots].read(seq, job);
  }
  const Extras& extras(std::uint64_t seq) const noexcept { return extras_[seq % slots]; }
  Segment* segments(std::uint32_t first) noexcept { return &segments_[first]; }

  // A tenancy that failed in the service's hands: puts the failure, which the service has left in
  // line C, into this process's ledger, unless it is there. Any thread; takes the ledger's lock.
  void import_failure(std::uint64_t seq, Code code) noexcept;
  // All of those whose slots have not been used again.
  void import_failures() noexcept;

  // The lowest seq below `end` whose tenancy has not ended, or `end`. (Acquire.) Remembers how far
  // it came.
  std::uint64_t first_unfinished(std::uint64_t end) noexcept;

  // Every tenancy below has ended. (Acquire.) Only grows, and is true of a ring at rest too.
  std::uint64_t finished_below() const noexcept {
    return finished_below_.load(std::memory_order_acquire);
  }

  // Has this tenancy, which was published, ended? (Acquire.)
  bool ended(std::uint64_t seq) const noexcept {
    const std::uint64_t word = state_word(seq).load(std::memory_order_acquire);
    return State::seq(word) >= seq || (word == 0 && seq < finished_below());
  }

  // Tenancy::claim() of one of this ring's. Where the ring has come to rest since the caller read
  // the parameters, its claims read as none; what was claimed there is a tenancy that had ended.
  int claim(const Tenancy& tenancy, const Chunks& chunks,
            std::uint32_t only = ~std::uint32_t{0}) noexcept {
    const int chunk = tenancy.claim(chunks, only);
    return chunk >= 0 && tenancy.seq < finished_below() ? -1 : chunk;
  }

  // ---- the table's (rings.hpp) ----
  // Brings a ring to life in zeroed memory. There is no constructor: it would touch a quarter of a
  // MiB for every thread.
  void begin(std::uint32_t ring_index, std::uint32_t table_cookie) noexcept;

  // The same for a child of fork, where the ring has a past: every request below `tail` has ended,
  // as the ledger knows, but for those in `unfinished` (a bit a slot), which fail here.
  void begin_ended(std::uint32_t ring_index, std::uint32_t table_cookie, std::uint64_t tail,
                   const Unfinished& unfinished) noexcept;
  Unfinished unfinished() noexcept;

  // Its body reads as zero, and is to hold again what every tenancy below the tail left there: that
  // it has ended, and how, as far as the ledger knows.
  void fill_in_ended() noexcept;

  // As begin_ended(), but the ring is at rest.
  void begin_at_rest(std::uint32_t ring_index, std::uint32_t table_cookie,
                     std::uint64_t tail) noexcept;

  // What lies in front of its head: whole pages.
  std::size_t body_bytes() const noexcept {
    const auto* head =
        reinterpret_cast<const std::byte*>(&completions) + CompletionQueue::body_bytes;
    return static_cast<std::size_t>(head - reinterpret_cast<const std::byte*>(this)) &
           ~std::size_t{4095};
  }

  // Nobody sleeps on or helps with its requests, whatever the counts say.
  void forget_waiters() noexcept;

  // Makes a quiet ring a new owner's: whatever its former one left half-done (it may not exist in
  // this process) is forgotten.
  void adopt() noexcept;

  std::atomic<bool> owned;      // a thread has it
  std::atomic<bool> abandoned;  // in a fork child: the ring of a thread that does not exist there
  std::atomic<bool> emptied;    // at rest, and its body's pages have been given back
  bool late;                    // its owner had given up a ring before: it is ending
  std::int32_t owner_thread;    // the kernel's number for the owner
  std::uint32_t index;
  std::uint32_t cookie;

  // In a child of fork (execution/inherit.hpp): requests below were the parent's, and what of them
  // was not done then nobody is at here. 0 in a process that was not forked.
  std::atomic<std::uint64_t> inherited_below;
  // The request that a signal handler forked amid the publishing of, or 0: published here, for no
  // mover that is told.
  std::atomic<std::uint64_t> interrupted;
  std::atomic<std::uint32_t> adopting;  // a thread finishes an inherited request
  bool nobody_moves(std::uint64_t seq) const noexcept {
    return seq < inherited_below.load(std::memory_order_relaxed) ||
           seq == interrupted.load(std::memory_order_relaxed);
  }

  // Not on a line that movers read: each submit writes it twice.
  alignas(64) std::atomic<bool> publishing;  // its owner is passing the gate (gate/gate.hpp)
  std::atomic<std::uint64_t> inlined;        // requests the owner copied itself; only it writes

  // Waiters that are amid a chunk of a request of the service's, and whether they must keep off:
  // when the service is gone, what is claimed, not done and nobody's here was its
  // (client/recover.cpp).
  std::atomic<std::uint32_t> helpers;
  std::atomic<std::uint32_t> recovering;

  // So that generations begin at 1, and zeroed lines are old.
  static constexpr std::uint64_t first_seq = slots;

 private:
  bool look_for_room() noexcept;

  // The owner's line; tail_ is read by others for statistics and drains.
  std::atomic<std::uint64_t> tail_;
  std::uint64_t credit_;        // slots known to be free
  std::uint64_t reclaimed_;     // segments of requests below are free again
  std::uint32_t segment_head_;  // next free segment
  std::uint32_t segment_free_;
  std::uint32_t segment_head_before_;  // ... the last reservation
  std::uint32_t segment_reserved_;     // taken for the next request, padding included

  std::uint32_t segments_used_[slots];  // owner: segments a request took, padding included

  alignas(64) std::atomic<std::uint64_t> finished_below_;  // only grows
};

}  // namespace haul
