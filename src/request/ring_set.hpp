// The set of the rings in use: those that a thread owns, and those whose owner has left requests
// behind. Movers, drains and gates walk this set, so their cost follows the threads there are now,
// not all that ever were.
//
// The set is a bitmap with a version. Changes happen under the rings' lock: a change sets or clears
// the bit, then raises the version. Readers take no lock: they read the version, then the bits, and
// walk again when the version has changed.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "request/board.hpp"

namespace haul {

class RingSet {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  // Under the rings' lock. The ring must be made before it is added.
  void add(std::uint32_t index) noexcept {
    words_[index / 64].fetch_or(std::uint64_t{1} << index % 64, std::memory_order_release);
    version_.fetch_add(1, std::memory_order_release);
  }
  void remove(std::uint32_t index) noexcept {
    words_[index / 64].fetch_and(~(std::uint64_t{1} << index % 64), std::memory_order_release);
    version_.fetch_add(1, std::memory_order_release);
  }
  void clear() noexcept {
    for (std::atomic<std::uint64_t>& word : words_) word.store(0, std::memory_order_relaxed);
    version_.fetch_add(1, std::memory_order_release);
  }

  bool has(std::uint32_t index) const noexcept {
    return (words_[index / 64].load(std::memory_order_relaxed) >> index % 64 & 1) != 0;
  }

  // A thread that reads the version (acquire), walks the set, and finds the same version again has
  // missed nothing that was added before it first read it.
  std::uint32_t version() const noexcept { return version_.load(std::memory_order_acquire); }

  // Calls act(index) for each member below `count`, lowest first. Any thread; rings that come and
  // go meanwhile may be among them or not.
  template <class Act>
  void for_each(std::uint32_t count, Act act) const noexcept {
    for (std::uint32_t word = 0; word * 64 < count; ++word) {
      // Acquire: pairs with add().
      std::uint64_t bits = words_[word].load(std::memory_order_acquire);
      for (; bits != 0; bits &= bits - 1) {
        act(word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)));
      }
    }
  }

  // The lowest index below `count` that is not a member, or none.
  std::uint32_t lowest_outside(std::uint32_t count) const noexcept {
    for (std::uint32_t word = 0; word * 64 < count; ++word) {
      const std::uint64_t bits = ~words_[word].load(std::memory_order_relaxed);
      if (bits == 0) continue;
      const std::uint32_t index = word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      return index < count ? index : none;
    }
    return none;
  }

 private:
  std::atomic<std::uint64_t> words_[max_rings / 64] = {};
  alignas(64) std::atomic<std::uint32_t> version_{0};
};

}  // namespace haul
