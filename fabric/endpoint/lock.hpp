// The locks of libfabric's objects. Both are one word, spin briefly, and sleep when they must.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul::fabric {

// Thread-safe. Not recursive.
class WordLock {
 public:
  void lock() noexcept {
    std::uint32_t expected = unlocked;
    // Acquire: pairs with the release in unlock().
    if (word_.compare_exchange_strong(expected, locked, std::memory_order_acquire)) return;
    wait();
  }
  bool try_lock() noexcept {
    std::uint32_t expected = unlocked;
    return word_.compare_exchange_strong(expected, locked, std::memory_order_acquire);
  }
  void unlock() noexcept {
    // Release: pairs with the acquire in lock() and wait().
    if (word_.exchange(unlocked, std::memory_order_release) == contended) wake();
  }

 private:
  static constexpr std::uint32_t unlocked = 0, locked = 1, contended = 2;
  void wait() noexcept;
  void wake() noexcept;

  std::atomic<std::uint32_t> word_{unlocked};
};

// A lock that does nothing where the program has promised to serialise its calls.
class DataLock {
 public:
  explicit DataLock(bool needed) noexcept : needed_(needed) {}
  void lock() noexcept {
    if (needed_) lock_.lock();
  }
  bool try_lock() noexcept { return !needed_ || lock_.try_lock(); }
  void unlock() noexcept {
    if (needed_) lock_.unlock();
  }

 private:
  const bool needed_;
  WordLock lock_;
};

template <class Lockable>
class [[nodiscard]] Guard {
 public:
  explicit Guard(Lockable& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lockable& lock_;
};

}  // namespace haul::fabric
