// The bimodal branch predictor: a two-bit counter for each of so many addresses.
#pragma once

#include <cstdint>
#include <vector>

namespace bcisim {

class Predictor {
 public:
  // entries: a power of two. All begin weakly not taken.
  explicit Predictor(unsigned entries) : counters_(entries, 1) {}

  // Was it right about the branch at that address? It has learnt then.
  bool predict(std::uint64_t address, bool taken) {
    std::uint8_t& counter = counters_[address & (counters_.size() - 1)];
    const bool right = (counter >= 2) == taken;
    if (taken && counter < 3) ++counter;
    if (!taken && counter > 0) --counter;
    return right;
  }

 private:
  std::vector<std::uint8_t> counters_;
};

}  // namespace bcisim
