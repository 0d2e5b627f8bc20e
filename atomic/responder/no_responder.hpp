// The responder of a node "none": it serves nobody, and holds nothing.
#pragma once

#include "atomic/responder/responder.hpp"

namespace haul::atomics {

class NoResponder final : public Responder {
 public:
  void close() noexcept override {}
  bool serves() const noexcept override { return false; }
  bool add_window(const WindowMemory&, haul_atomic_window_name*, Error*) noexcept override {
    return false;
  }
  void remove_window(unsigned) noexcept override {}
};

}  // namespace haul::atomics
