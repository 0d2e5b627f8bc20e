// One node acquires and releases a lock at a given rate (paper 002, V-C).
#pragma once

#include <cstdint>

#include "bench/kit/stats.hpp"
#include "bench/remote/hosts/atomic_stage.hpp"

namespace haul::bench {

class PacedLock {
 public:
  // Runs the home's responder on `responder_cpu`.
  PacedLock(const Pair& hosts, const ResponderChoice& responder, int responder_cpu, int client_cpu);

  // How the time between operations passes.
  enum class Pause { spin, sleep };
  // Acquires and releases in turn for `ns`, one operation every 1e9 / rate_per_s ns, evenly; each
  // is one packet to the home and one back. Rate 0 lets the time pass in the same way. Throws
  // CommandFailure if a fencing token did not grow.
  void use(double rate_per_s, std::uint64_t ns, Pause pause);

  std::uint64_t operations() const { return operations_; }  // in all
  // Appends the times of the operations since the last call.
  void take_times_us(Samples* times_us);

 private:
  void operate();

  Node home_, client_;
  Window home_window_, own_window_;
  Lock lock_;
  bool held_ = false;
  std::uint64_t operations_ = 0, last_token_ = 0;
  Samples times_us_;
};

}  // namespace haul::bench
