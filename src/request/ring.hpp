// A ring: the requests of one thread, in the order of their submission. Its owner publishes; movers
// and waiters claim.
//
// The owner takes the next seq, whose slot is free once the tenancy a whole ring before it has
// ended, writes the parameters there and then stores the seq (release); that publishes the request.
// Workers look for the seq they expect (acquire), copy the parameters, and claim chunks by
// tenancy.hpp's words, which say whether the copy was still good. `tail_` follows the publishing,
// for drains and statistics. So the owner waits for nobody, and no thread but the owner writes a
// slot's parameters.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "completion/queue.hpp"
#include "completion/tenancy.hpp"
#include "request/job.hpp"

namespace haul {

// Lies in private memory, or in memory that the node's service maps too (board.hpp): it is a whole
// number of pages, and the service follows no pointer in it.
//
// First comes its body (the slots, and what goes with each), then its head, about a page. A ring at
// rest (request/rest.hpp) has only its head: its body reads as zero.
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
  CompletionQueue completions;  // its entries belong to the body

  Ring() = delete;

  // One bit a slot: its request was published and has not ended.
  struct Unfinished {
    std::uint64_t bits[slots / 64] = {};
  };

  // ---- owner ----

  // Is there a slot for one more request? When the slots known to be free are used up, it reads
  // many state lines at once.
  bool has_room() noexcept { return credit_ != 0 || look_for_room(); }

  // The seq that the next publish() will use.
  std::uint64_t next_seq() const noexcept { return tail_.load(std::memory_order_acquire); }

  // Takes room for the segments of a vector, for the next request published: the index of `count`
  // consecutive ones, or -1 if the arena is full.
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

  // For a tenancy that failed in the service: puts the failure, which the service has left in line
  // C, into this process's ledger, unless it is there. Any thread; takes the ledger's lock.
  void import_failure(std::uint64_t seq, Code code) noexcept;
  // The same for all whose slots have not been used again.
  void import_failures() noexcept;

  // The lowest seq below `end` whose tenancy has not ended, or `end`. (Acquire.) Remembers how far
  // it has come.
  std::uint64_t first_unfinished(std::uint64_t end) noexcept;

  // Every tenancy below this seq has ended. (Acquire.) Only grows, and holds for a ring at rest
  // too.
  std::uint64_t finished_below() const noexcept {
    return finished_below_.load(std::memory_order_acquire);
  }

  // Has this tenancy, which was published, ended? (Acquire.)
  bool ended(std::uint64_t seq) const noexcept {
    const std::uint64_t word = state_word(seq).load(std::memory_order_acquire);
    return State::seq(word) >= seq || (word == 0 && seq < finished_below());
  }

  // Tenancy::claim() for a tenancy of this ring. If the ring has come to rest since the caller read
  // the parameters, its claims read as none: a chunk claimed then belongs to a tenancy that has
  // ended, and is given up.
  int claim(const Tenancy& tenancy, const Chunks& chunks,
            std::uint32_t only = ~std::uint32_t{0}) noexcept {
    const int chunk = tenancy.claim(chunks, only);
    return chunk >= 0 && tenancy.seq < finished_below() ? -1 : chunk;
  }

  // Initialises a ring in zeroed memory. There is no constructor: it would touch a quarter of a MiB
  // for every thread.
  void begin(std::uint32_t ring_index, std::uint32_t table_cookie) noexcept;

  // The same for a child of fork, where the ring has a past: every request below `tail` has ended,
  // in the way that the ledger knows, except those in `unfinished` (a bit a slot), which fail here.
  void begin_ended(std::uint32_t ring_index, std::uint32_t table_cookie, std::uint64_t tail,
                   const Unfinished& unfinished) noexcept;
  Unfinished unfinished() noexcept;

  // Fills in a body that reads as zero with what every tenancy below the tail left there: that it
  // has ended, and how, as far as the ledger knows.
  void fill_in_ended() noexcept;

  // As begin_ended(), for a ring at rest.
  void begin_at_rest(std::uint32_t ring_index, std::uint32_t table_cookie,
                     std::uint64_t tail) noexcept;

  // The bytes in front of its head: whole pages.
  std::size_t body_bytes() const noexcept {
    const auto* head =
        reinterpret_cast<const std::byte*>(&completions) + CompletionQueue::body_bytes;
    return static_cast<std::size_t>(head - reinterpret_cast<const std::byte*>(this)) &
           ~std::size_t{4095};
  }

  // Resets the counts of sleepers and helpers: nobody sleeps on its requests or helps with them.
  void forget_waiters() noexcept;

  // Makes a quiet ring a new owner's, and forgets what its former owner, who may not exist in this
  // process, left half-done.
  void adopt() noexcept;

  std::atomic<bool> owned;      // a thread has it
  std::atomic<bool> abandoned;  // in a fork's child: its thread does not exist there
  std::atomic<bool> emptied;    // at rest, and its body's pages have been given back
  bool late;                    // its owner gave up a ring before, so is ending
  std::int32_t owner_thread;    // the kernel's number for the owner
  std::uint32_t index;
  std::uint32_t cookie;

  // In a child of fork (execution/inherit.hpp): requests below this were the parent's, and no
  // thread is at work here on those that were not done then. 0 in a process that was not forked.
  std::atomic<std::uint64_t> inherited_below;
  // The request whose publishing a signal handler interrupted with a fork, or 0: it is published
  // here, but no mover is told.
  std::atomic<std::uint64_t> interrupted;
  std::atomic<std::uint32_t> adopting;  // a thread finishes an inherited request
  bool nobody_moves(std::uint64_t seq) const noexcept {
    return seq < inherited_below.load(std::memory_order_relaxed) ||
           seq == interrupted.load(std::memory_order_relaxed);
  }

  // Not on a line that movers read: each submit writes it twice.
  alignas(64) std::atomic<bool> publishing;  // its owner is passing the gate (gate/gate.hpp)
  std::atomic<std::uint64_t> inlined;        // requests the owner copied itself; only it writes

  // How many waiters are working on a chunk of the service's requests, and whether they must keep
  // off: when the service is gone, every chunk that is claimed, not done and nobody's here was the
  // service's (client/recover.cpp).
  std::atomic<std::uint32_t> helpers;
  std::atomic<std::uint32_t> recovering;

  // So that generations begin at 1, and zeroed lines are older than any.
  static constexpr std::uint64_t first_seq = slots;

 private:
  bool look_for_room() noexcept;

  // The owner's line; others read tail_ for statistics and drains.
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
