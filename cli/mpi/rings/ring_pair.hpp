// Two endpoints of this process that exchange messages through real rings, each on a CPU of its
// own: what a ring is calibrated with. The protocol is the provider's own; there is no direct
// access between the two.
#pragma once

#include <cstddef>
#include <memory>

#include "base/private.hpp"

namespace haul::cli {

// What is exchanged: `rounds` messages each way, in turns.
struct RingRun {
  std::size_t bytes = 0;
  unsigned rounds = 1;
  // Each message comes from, and goes to, memory that is in no near cache; else from and to the
  // same as the one before.
  bool off_cache = false;
};

class RingPair {
 public:
  // The longest message.
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  // Why there can be none in this haul, in a sentence's end; nullptr: there can be.
  static const char* missing();
  // Binds the calling thread to `cpu`, and a thread of its own to `other`, for as long as it lives.
  // Both CPUs must be in the process's affinity mask. nullptr: there is no memory or no thread for
  // it.
  static std::unique_ptr<RingPair> make(unsigned cpu, unsigned other);
  virtual ~RingPair() = default;

  // From now on both sides write like this.
  virtual void write_as(const HaulPrivateRing& ring) = 0;
  // How long a message takes one way, in ns: half of a round trip, on average. 0: the bytes were
  // not those that were sent, or nothing came for a second.
  virtual double exchange(const RingRun& run) = 0;
  // The share of the CPU time that it wanted which the calling thread got so far, from 0 to 1.
  virtual double ran_share() const = 0;
};

}  // namespace haul::cli
