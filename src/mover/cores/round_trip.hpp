// Measures how far apart two cores are: the time of a line's round trip between the mover and a
// helper on the submitter's CPU. The helper may have to wait long for that CPU, so the mover does
// not wait for it.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul {

// Driven by one thread, the mover. Static storage: the helper thread looks into it.
class RoundTripMeter {
 public:
  bool busy() const noexcept { return started_; }

  // Starts a helper (the aide "haul-distance") on CPU `other` (-1: on any CPU but own_cpu); it runs
  // for a millisecond at most, usually 30 us. Does nothing if one is under way.
  void start(int own_cpu, int other) noexcept;

  // Median round trip in ns when the helper has just run, else 0. The exchange takes 20 to 100 us,
  // 200 at most.
  double poll() noexcept;

  // Waits until the helper has ended.
  void finish() noexcept;

  // For a child of fork, in which there is no helper.
  void forget() noexcept { started_ = false; }

 private:
  static void answer(void* meter) noexcept;
  double exchange() noexcept;

  alignas(64) std::atomic<std::uint32_t> served_{0};
  alignas(64) std::atomic<std::uint32_t> answered_{0};
  std::atomic<bool> gone_{false};
  bool started_ = false, played_ = false;
  int own_cpu_ = -1, other_cpu_ = -1;
};

}  // namespace haul
