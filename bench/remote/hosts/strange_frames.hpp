// Frames that arrive at the home and that nobody there wants: they show what an operation costs the
// home's core before anybody has looked at it.
#pragma once

#include <cstdint>

#include "bench/remote/hosts/atomic_stage.hpp"

namespace haul::bench {

class StrangeFrames {
 public:
  explicit StrangeFrames(const Pair& hosts);
  ~StrangeFrames();
  StrangeFrames(const StrangeFrames&) = delete;
  StrangeFrames& operator=(const StrangeFrames&) = delete;

  // Sends frames evenly for `ns`; rate 0 only lets the time pass.
  void send(double rate_per_s, std::uint64_t ns);
  std::uint64_t sent() const { return sent_; }

 private:
  const Pair& hosts_;
  int socket_;
  std::uint64_t sent_ = 0;
};

}  // namespace haul::bench
