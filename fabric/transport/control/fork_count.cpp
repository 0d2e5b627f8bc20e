// Both counts change together: no signal handler forks between.
#include "fabric/transport/control/fork_count.hpp"

#include "base/os/os.hpp"

namespace haul::fabric {

void ForkCount::begin(Own& own) noexcept {
  os::SignalMask saved;
  os::block_signals(&saved);
  ++own;
  all_.fetch_add(1, std::memory_order_seq_cst);
  os::restore_signals(saved);
}

void ForkCount::end(Own& own) noexcept {
  os::SignalMask saved;
  os::block_signals(&saved);
  if (own != 0) {
    --own;
    all_.fetch_sub(1, std::memory_order_seq_cst);
  }
  os::restore_signals(saved);
}

bool ForkCount::forget(Own& own) noexcept {
  os::SignalMask saved;
  os::block_signals(&saved);
  const bool counted = own != 0;
  own = 0;
  all_.store(0, std::memory_order_seq_cst);
  os::restore_signals(saved);
  return counted;
}

}  // namespace haul::fabric
