// The pool of bounce buffers, which takes no memory until it is first used.
#include "engine/cma/bounce.hpp"

#include <atomic>

namespace haul::cma {
namespace {

constexpr int pool_count = 4;
// The kernel pins up to this much without an allocation of its own.
constexpr std::size_t pool_bytes = 64 * 1024;

alignas(4096) constinit std::byte pool[pool_count][pool_bytes] = {};
constinit std::atomic<bool> taken[pool_count] = {};

}  // namespace

Bounce::Bounce() noexcept : data_(own_), size_bytes_(own_bytes), lent_(-1) {
  for (int index = 0; index < pool_count; ++index) {
    // Acquire: pairs with the release in the destructor.
    if (!taken[index].load(std::memory_order_relaxed) &&
        !taken[index].exchange(true, std::memory_order_acquire)) {
      data_ = pool[index];
      size_bytes_ = pool_bytes;
      lent_ = index;
      return;
    }
  }
}

Bounce::~Bounce() {
  if (lent_ >= 0) taken[lent_].store(false, std::memory_order_release);
}

}  // namespace haul::cma
