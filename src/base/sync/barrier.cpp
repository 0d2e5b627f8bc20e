// membarrier(PRIVATE_EXPEDITED), registered on first use.
#include "base/sync/barrier.hpp"

#include <atomic>

#include "base/os/os.hpp"

namespace haul {
namespace {

enum : int { unknown = 0, works = 1, refused = 2 };
constinit std::atomic<int> support{unknown};

}  // namespace

bool asymmetric_barrier_works() noexcept {
  int known = support.load(std::memory_order_relaxed);
  if (known == unknown) {
    known = os::membarrier_register() ? works : refused;
    support.store(known, std::memory_order_relaxed);
  }
  return known == works;
}

bool asymmetric_barrier() noexcept {
  return asymmetric_barrier_works() && os::membarrier();
}

}  // namespace haul
