// How long to wait for an answer before asking again: measured round trips, as RFC 6298 has it
// (paper 002, III-A, says only that there is a time).
#pragma once

#include <algorithm>
#include <cstdint>

namespace haul::atomics {

class RetransmitTimer {
 public:
  // Nothing is sent again sooner: a receiver that waits for its core is slow, and the packet not
  // lost.
  static constexpr std::uint64_t least_ns = 200'000;
  static constexpr std::uint64_t most_ns = 100'000'000;

  // A round trip: from a question, or one of its repetitions, to the answer to that very packet.
  void measured(std::uint64_t round_trip_ns) noexcept {
    if (smooth_ns_ == 0) {
      smooth_ns_ = round_trip_ns;
      spread_ns_ = round_trip_ns / 2;
      return;
    }
    const std::uint64_t off =
        std::max(smooth_ns_, round_trip_ns) - std::min(smooth_ns_, round_trip_ns);
    spread_ns_ = (3 * spread_ns_ + off) / 4;
    smooth_ns_ = (7 * smooth_ns_ + round_trip_ns) / 8;
  }

  // Before the `tries`th repetition (from 0): doubles each time.
  std::uint64_t before_again_ns(unsigned tries) const noexcept {
    // Equal round trips leave no spread, and a slightly longer one must not count as lost.
    const std::uint64_t margin = std::max(4 * spread_ns_, smooth_ns_ / 16);
    const std::uint64_t first =
        smooth_ns_ == 0 ? unknown_ns : std::max(least_ns, smooth_ns_ + margin);
    return std::min(most_ns, first << std::min(tries, 16u));
  }

  std::uint64_t round_trip_ns() const noexcept { return smooth_ns_; }

 private:
  static constexpr std::uint64_t unknown_ns = 5'000'000;
  std::uint64_t smooth_ns_ = 0, spread_ns_ = 0;
};

}  // namespace haul::atomics
