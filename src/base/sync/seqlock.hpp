// A value that one writer at a time replaces and many readers copy without a lock.
//
// The writer makes the version odd, stores the words, and makes it even again. A reader notes the
// version, copies the words, and looks at the version once more: the copy is whole if both are the
// same and even, else the reader tries again. Each word is stored with release order, so a reader
// that sees a new word (acquire) also sees that the version has changed. Version 0 means that
// nothing has been written yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/sync/backoff.hpp"

namespace haul {

// Readers retry while a write is under way. Writers must exclude each other by other means. It can
// be constinit, and begins as zero.
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
      // Acquire on each word keeps the second look at the version behind them (a fence would do,
      // but TSan does not understand fences).
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
    for (std::size_t i = 0; i < words; ++i) words_[i].store(copy[i], std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  // Forgets what was written, or half-written by a thread that does not exist in this process.
  void remake() noexcept { version_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t words = (sizeof(T) + 7) / 8;
  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::uint64_t> words_[words] = {};
};

}  // namespace haul
