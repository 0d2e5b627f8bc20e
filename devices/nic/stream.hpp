// How pieces become fragments that arrive once and in order, on a wire that loses frames, repeats
// them and lets them overtake each other (go-back-N). Sender and receiver are one process, so there
// are no acknowledgements: the sender sees what the receiver expects. Fragments are numbered
// through, from 0, and arrive in this order or are refused; those that do not arrive in time are
// sent again from the first that is missing. Pure: no clock, no system call. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/engine.hpp"

namespace haul::nic {

// A piece, without the bytes at its front and end that never become fragments: those at the front
// are in place already, those at the end the stream copies.
struct Load {
  std::uint64_t tag = 0;
  std::uintptr_t dst = 0, src = 0;
  std::size_t length = 0, front = 0, end = 0;  // front + end < length
  Watermark watermark;
  // What a card adds to the program's addresses to find them through an IOMMU.
  std::uint64_t dst_shift = 0, src_shift = 0;
};

struct Fragment {
  std::uintptr_t dst = 0, src = 0;
  std::size_t bytes = 0;
  std::uint64_t dst_shift = 0, src_shift = 0;
};

class FragmentStream {
 public:
  static constexpr unsigned most_loads = 32;

  // `fragment_bytes` of each fragment but a piece's last; at most `window` of them are under way.
  void start(std::size_t fragment_bytes, unsigned window) noexcept;
  std::size_t fragment_bytes() const noexcept { return fragment_bytes_; }

  bool has_room() const noexcept { return loads_behind_ - first_load_ < most_loads; }
  bool idle() const noexcept { return loads_behind_ == first_load_; }
  void add(const Load& load) noexcept;

  // Numbers of fragments: the next to arrive, the next to send, and the one behind the last.
  std::uint64_t arrived() const noexcept { return arrived_; }
  std::uint64_t sent() const noexcept { return sent_; }
  std::uint64_t behind() const noexcept { return behind_; }
  // How many may be sent now.
  unsigned sendable() const noexcept;
  // arrived() <= number < behind()
  Fragment fragment(std::uint64_t number) const noexcept;

  void send(unsigned count, std::uint64_t now_ns) noexcept;
  // The bytes of the next `count` fragments are in place.
  void arrive(unsigned count, std::uint64_t now_ns) noexcept;
  // Nothing has arrived for too long, or a fragment before one that came is lost: all that is under
  // way is to be sent again. Each time in vain doubles the patience.
  bool give_up(std::uint64_t now_ns) noexcept;
  // How often it was given up, which each frame carries: a turn of sending.
  std::uint32_t turn() const noexcept { return turn_; }
  // A fragment behind the next one came, of this turn: on a wire that keeps the order that one is
  // lost.
  void came_early() noexcept { gap_ = true; }
  // A fragment of an older turn arrived: it was given up too early. So more patience is had from
  // then on: a card that gathers interrupts, or one on a busy machine, is no wire that loses.
  void came_late() noexcept;
  std::uint64_t resent() const noexcept { return resent_; }
  // Given up again and again, for as long as a link takes to come back, and nothing arrived.
  bool hopeless(std::uint64_t now_ns) const noexcept {
    return in_vain_ >= hopeless_times && now_ns - waiting_since_ns_ >= hopeless_ns;
  }

  // Reports the pieces that have arrived wholly; after fail() all.
  std::size_t finish(Finished* finished, std::size_t most) noexcept;
  void fail(Code code) noexcept { failure_ = code; }
  bool failed() const noexcept { return failure_ != Code::ok; }

 private:
  // (A card's interrupts may be a quarter of a millisecond apart.)
  static constexpr std::uint64_t first_patience_ns = 2'000'000, hopeless_ns = 2'000'000'000;
  static constexpr unsigned most_doublings = 4, hopeless_times = 8, least_allowed = 4;
  // After so many fragments of which none was late, half of the patience is tried again.
  static constexpr std::uint64_t punctual_fragments = 1 << 16;

  struct Loaded {
    Load load;
    std::uint64_t first = 0, behind = 0;  // its fragments
  };
  Loaded& at(std::uint64_t index) noexcept { return loads_[index % most_loads]; }
  const Loaded& at(std::uint64_t index) const noexcept { return loads_[index % most_loads]; }
  std::size_t good_bytes(const Loaded& loaded) const noexcept;

  Loaded loads_[most_loads];
  std::uint64_t first_load_ = 0, loads_behind_ = 0;
  std::uint64_t arrived_ = 0, sent_ = 0, behind_ = 0;
  std::size_t fragment_bytes_ = 1;
  unsigned window_ = 1, in_vain_ = 0;
  // Of the window: less after what was given up for its time, so that a slow wire is not filled
  // with second copies; more again as fragments arrive.
  unsigned allowed_ = 1;
  unsigned slow_ = 0;                       // how often came_late() doubled the patience
  std::uint32_t turn_ = 0, late_turn_ = 0;  // late_turn_: the last one that began too early
  bool gap_ = false;                        // the next fragment of this turn is lost
  std::uint64_t punctual_since_ = 0;        // the fragment from which on none was late
  // When something was sent from rest or arrived, and that or when it was given up.
  std::uint64_t waiting_since_ns_ = 0, last_ns_ = 0;
  std::uint64_t resent_ = 0;
  Code failure_ = Code::ok;
};

}  // namespace haul::nic
