// Have the cores moved apart, or together? A hypervisor may do that at any time. The mover notices
// by how long a line that a submitter has just written takes to arrive; then it is worth while to
// measure the round trip again.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul {

// One mover's. Costs two clock reads and one line transfer a millisecond of work.
class DriftWatch {
 public:
  // Times the read of a word on a line that its owner has written a moment ago, if it is time
  // again.
  void sample(const std::atomic<bool>& owners_line) noexcept;

  // Notes one such time.
  void add(std::uint32_t elapsed_ticks) noexcept;

  // Do the latest samples differ from those after the last reset()?
  bool drifted() const noexcept;

  // The distance has just been measured: the next samples belong to it.
  void reset() noexcept { taken_ = 0; }

 private:
  static constexpr unsigned window = 7;
  static double median(const std::uint32_t* ticks) noexcept;

  std::uint64_t last_ticks_ = 0;
  unsigned taken_ = 0;
  std::uint32_t base_ticks_[window] = {};    // the first samples
  std::uint32_t latest_ticks_[window] = {};  // a ring of the latest
};

}  // namespace haul
