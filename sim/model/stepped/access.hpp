// An access to memory under way: when it will be done, as far as that is known.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "model/parameters.hpp"

namespace bcisim {

inline constexpr Cycle never = ~Cycle{0};

// The cycle in which a block is there (or has left); `never` until the bus has been given to it.
using Arrival = std::shared_ptr<Cycle>;

class Access {
 public:
  Access() = default;
  explicit Access(Cycle at) : at_(at) {}
  // Not before `at` either.
  Access(Cycle at, Arrival arrival) : at_(at) { arrivals_.push_back(std::move(arrival)); }

  // This and another.
  void join(const Access& other) {
    at_ = std::max(at_, other.at_);
    arrivals_.insert(arrivals_.end(), other.arrivals_.begin(), other.arrivals_.end());
  }
  // For a block that is not where it was looked for first.
  bool waits_for_arrival() const { return !arrivals_.empty(); }
  // never: not known yet.
  Cycle done() const {
    Cycle done = at_;
    for (const Arrival& arrival : arrivals_) done = std::max(done, *arrival);
    return done;
  }

 private:
  Cycle at_ = 0;
  std::vector<Arrival> arrivals_;
};

// The earlier of `event`, if it is to come, and `best`.
inline Cycle next_of(Cycle event, Cycle now, Cycle best) {
  return event > now && event < best ? event : best;
}

}  // namespace bcisim
