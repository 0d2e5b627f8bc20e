// Frames lost, sent twice, and overtaken on purpose, so that tests see what becomes of them: the
// word trial=P in HAUL_ENGINE_NIC, P percent of each.
#pragma once

#include <cstdint>

namespace haul::nic {

class FrameTrial {
 public:
  void start(unsigned percent) noexcept { percent_ = percent; }
  bool loses() noexcept { return happens(); }
  bool repeats() noexcept { return happens(); }
  bool swaps() noexcept { return happens(); }

 private:
  bool happens() noexcept {
    if (percent_ == 0) return false;
    random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
    return random_ % 100 < percent_;
  }

  unsigned percent_ = 0;
  std::uint64_t random_ = 88172645463325252;
};

}  // namespace haul::nic
