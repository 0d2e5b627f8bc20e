// One tenancy of a slot, as its workers and waiters see it: which chunks are claimed, which are
// done, how far the workers have come, and the state that ends it.
//
// A slot serves one request after another; each is a tenancy, with a seq of its ring. Workers
// (movers, waiters that help, the node's service) claim a chunk by setting its bit in `claim`, move
// its bytes, raising the chunk's watermark now and then, and report it by setting its bit in
// `done`. Whoever reports the last chunk completes the request and ends the tenancy: it stores
// {seq, code} in the state word, which is all that a test or wait must read. The words carry the
// tenancy's generation, so bits of an older tenancy read as none and nobody resets them. A claimed
// chunk pins the slot: the owner reuses it only after the end, and the end comes only when every
// claimed chunk is reported. A waiter that sleeps raises `sleepers`, issues a barrier and looks at
// the state again; the end stores the state and looks at `sleepers`: one of the two sees the other.
// docs/design/hot-path.md has the reason for each memory order, tests/model/ the models.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/chunks.hpp"
#include "base/error.hpp"

namespace haul {

// Line C. Words that carry a generation read as zero for every newer tenancy, so they are never
// reset.
struct alignas(64) Claims {
  std::atomic<std::uint64_t> claim{0};     // {generation 32 | claimed chunks 31}
  std::atomic<std::uint64_t> done{0};      // {generation 32 | failed 1 | done chunks 31}
  std::atomic<std::uint64_t> wanted{0};    // {generation 32 | chunks somebody waits for}
  std::atomic<std::uint32_t> sleepers{0};  // waiters asleep on the state word, of whatever tenancy
  // How a request failed in the node's service, which cannot write this process's ledger:
  // {generation 32 | -Code 32}, and the good bytes from the front. The bytes are stored first.
  std::atomic<std::uint64_t> failure{0};
  std::atomic<std::uint64_t> failure_good{0};
};

// Takes one from a count without letting it fall below 0: it may have been reset meanwhile, because
// its ring has moved (request/sharing.hpp).
void count_out(std::atomic<std::uint32_t>& count) noexcept;

// Line S. Written once a tenancy, by its last finisher; {seq 56 | -Code 8}. Its low half is the
// futex word.
struct alignas(64) State {
  std::atomic<std::uint64_t> word{0};

  static constexpr std::uint64_t make(std::uint64_t seq, Code code) noexcept {
    return seq << 8 | static_cast<std::uint8_t>(-static_cast<std::int32_t>(code));
  }
  static constexpr std::uint64_t seq(std::uint64_t word) noexcept { return word >> 8; }
  static constexpr Code code(std::uint64_t word) noexcept {
    return static_cast<Code>(-static_cast<std::int32_t>(word & 0xff));
  }
};

// Lines W: one word a chunk, {generation 32 | blocks done 32}, written by the worker that claimed
// the chunk.
struct alignas(64) Watermarks {
  std::atomic<std::uint64_t> word[Chunks::max_count + 1];
};

// A tenancy's view of its lines. Cheap to make; holds no ownership.
struct Tenancy {
  Claims* claims;
  State* state;
  Watermarks* watermarks;
  std::uint64_t seq;
  std::uint32_t generation;
  // How often claim() and finish() try their compare-and-swap; 0: until it succeeds. The node's
  // service bounds it, since a hostile process could change the words for ever.
  std::uint32_t attempts = 0;

  // Claims a chunk that is free, a wanted one first, else the lowest. Returns its number, or -1 if
  // none is left or the tenancy is over. Success pins the slot until finish() of that chunk.
  // `chunks` may be torn (read while the owner refilled the slot). `only` restricts the choice.
  // Lock-free; any thread.
  int claim(const Chunks& chunks, std::uint32_t only = ~std::uint32_t{0}) const noexcept;

  // Is a chunk left to claim? (A hint; false once the tenancy is over.)
  bool claimable(const Chunks& chunks) const noexcept;

  // The chunks that are claimed and not reported.
  std::uint32_t unreported(const Chunks& chunks) const noexcept;

  // The chunks that have been reported. (Acquire.)
  std::uint32_t reported(const Chunks& chunks) const noexcept;

  // Has every chunk been reported? (Acquire.) *failed: has one of them failed?
  bool all_reported(const Chunks& chunks, bool* failed) const noexcept;

  struct Finish {
    bool last;             // this was the last chunk: complete the tenancy
    bool failed;           // some chunk failed
    bool gave_up = false;  // not reported: attempts are used up
  };
  // Reports a claimed chunk as done. Unless it was the last, nothing of the slot may be touched
  // afterwards.
  Finish finish(unsigned chunk, bool failed, const Chunks& chunks) const noexcept;

  // Ends the tenancy and wakes the waiters that sleep on it. Nothing of the slot, its parameters or
  // the user's memory may be touched afterwards.
  void end(Code code) const noexcept;

  // Wakes the waiters that sleep on the state word. A system call.
  void wake() const noexcept;

  // Asks workers to take these chunks first. A hint.
  void want(std::uint32_t chunk_bits) const noexcept;

  // Are bytes [from, to) of this tenancy, still in progress, visible? (Acquire.) If not, `missing`
  // has the bits of the chunks that lack some.
  bool range_visible(const Chunks& chunks, std::size_t from, std::size_t to,
                     std::uint32_t* missing) const noexcept;

  std::size_t visible_prefix(const Chunks& chunks) const noexcept;

  // Sleeps until the tenancy has ended, for about timeout_ns at most. May return early. A system
  // call or two.
  void sleep(std::uint64_t timeout_ns) const noexcept;

  // Bytes from the front of a chunk that are visible; `done` has the bits of the chunks known to be
  // done.
  std::size_t visible_in_chunk(const Chunks& chunks, unsigned chunk,
                               std::uint32_t done) const noexcept;
};

}  // namespace haul
