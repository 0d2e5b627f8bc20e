// A value that one writer at a time replaces and many readers copy without a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/backoff.hpp"

namespace haul {

// Readers retry while a write is under way. Writers exclude each other by other means.
// constinit-able, zero at first.
template <class T>
class Seqlock {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // False, with nothing read, before the first write.
  bool read(T* value) const noexcept {
    std::uint64_t copy[words];
    for (Backoff backoff;; backoff.pause()) {
      const std::uint32_t before = version_.load(std::memory_order_acquire);
      if (before == 0) return false;
      // Acquire on each word keeps the second look at the version behind them (a fence would, but
      // TSan knows none).
      for (std::size_t i = 0; i < words; ++i) copy[i] = words_[i].load(std::memory_order_acquire);
      if ((before & 1) == 0 && version_.load(std::memory_order_relaxed) == before) break;
    }
    std::memcpy(value, copy, sizeof(T));
    return true;
  }

  void write(const T& value) noexcept {
    std::uint64_t copy[words] = {};
    std::memcpy(copy, &value, sizeof(T));
    const std::uint32_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    // Release on each word keeps it behind the odd version.
    for (std::size_t i = 0; i < words; ++i) words_[i].store(copy[i], std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  // Forgets what was written, or half-written by a thread that does not exist here.
  void remake() noexcept { version_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t words = (sizeof(T) + 7) / 8;
  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::uint64_t> words_[words] = {};
};

}  // namespace haul
