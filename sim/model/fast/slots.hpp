// A stage of the pipeline that takes so many instructions a cycle, in order.
#pragma once

#include "model/parameters.hpp"

namespace bcisim {

class Slots {
 public:
  explicit Slots(unsigned width) : width_(width) {}

  // The cycle of the next instruction, which cannot be before `at`. Without branches, which the
  // host would mispredict.
  Cycle take(Cycle at) {
    const unsigned is_full = used_ >= width_ ? 1 : 0;
    const unsigned moves = is_full | (at > cycle_ ? 1U : 0U);
    const Cycle next = cycle_ + is_full;
    cycle_ = at > next ? at : next;
    used_ = (used_ & (moves - 1)) + 1;
    return cycle_;
  }
  // The cycle of the latest instruction.
  Cycle cycle() const { return cycle_; }
  // The next comes in another cycle.
  void end_cycle() { used_ = width_; }
  // The next cannot come before `at`.
  void restart(Cycle at) {
    if (at <= cycle_) return;
    cycle_ = at;
    used_ = 0;
  }

 private:
  unsigned width_, used_ = 0;
  Cycle cycle_ = 0;
};

}  // namespace bcisim
