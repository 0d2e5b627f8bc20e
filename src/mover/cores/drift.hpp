// Notices that the cores have moved apart or together, as a hypervisor may do at any time: the
// mover times how long a line that a submitter has just written takes to arrive. When that changes,
// it is worth measuring the round trip again.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul {

// Belongs to one mover. Costs two clock reads and one line transfer a millisecond of work.
class DriftWatch {
 public:
  // If it is time for the next sample, times the read of a word on a line that its owner has
  // written a moment ago.
  void sample(const std::atomic<bool>& owners_line) noexcept;

  // Adds one such time.
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
