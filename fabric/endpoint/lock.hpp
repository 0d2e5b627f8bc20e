// The locks of libfabric's objects. All sleep when they must, after they have spun briefly.
//
// BiasedLock is for a program that takes turns by itself, so that its own calls need no lock, and
// for one thread of the provider's, the guest, which comes in now and then. The program's side
// writes one word (`calls_`, odd while it is inside) and then looks at another (`guest_`), with
// nothing but a compiler barrier in between; the guest writes `guest_`, makes a memory barrier in
// all running threads of the process (membarrier), and then looks at `calls_`. So at least one of
// the two sees the other. If both do, the guest steps back, and the program's thread, which stays
// inside, waits until `guest_` is 0 again. The program therefore waits for one guest's turn at
// most, which the guest ends when it sees that it is awaited.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "base/os/os.hpp"

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
  // Some thread waits in lock(). A hint, at once up to date for the holder.
  bool is_awaited() const noexcept { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr std::uint32_t unlocked = 0, locked = 1, contended = 2;
  void wait() noexcept;
  void wake() noexcept;

  std::atomic<std::uint32_t> word_{unlocked};
  std::atomic<std::uint32_t> waiting_{0};
};

class BiasedLock {
 public:
  // ---- the program's threads, one at a time ----
  void lock() noexcept {
    calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    os::compiler_barrier();  // for the CPU, the guest issues a membarrier
    // Acquire: pairs with leave_as_guest().
    if (guest_.load(std::memory_order_acquire) != 0) [[unlikely]]
      wait();
  }
  void unlock() noexcept {
    // Release: pairs with enter_as_guest().
    calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // ---- the guest: one thread of process `self` ----
  // Does not wait: false while the program is inside.
  bool enter_as_guest(pid_t self) noexcept;
  void leave_as_guest() noexcept;
  // Odd while the program is inside, or wants to be.
  std::uint32_t calls() const noexcept { return calls_.load(std::memory_order_relaxed); }

 private:
  void wait() noexcept;

  std::atomic<std::uint32_t> calls_{0};   // twice the program's calls, and 1 within one
  std::atomic<std::uint32_t> guest_{0};   // the guest's process, while it is inside or looks
  std::atomic<std::uint32_t> asleep_{0};  // the program's thread sleeps until guest_ is 0
};

// A domain's lock, by what its program has promised.
class DataLock {
 public:
  enum class Kind : std::uint8_t {
    none,    // the program takes turns, and no thread of the provider's comes in
    biased,  // the program takes turns, and a guest comes in
    word,    // the program's threads come as they like
  };
  explicit DataLock(Kind kind) noexcept : kind_(kind) {}

  // ---- the program ----
  void lock() noexcept {
    if (kind_ == Kind::none) return;
    if (kind_ == Kind::biased) return biased_.lock();
    word_.lock();
    word_calls_.store(word_calls_.load(std::memory_order_relaxed) + 2, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    if (kind_ == Kind::none) return;
    if (kind_ == Kind::biased) return biased_.unlock();
    word_.unlock();
  }

  // ---- the guest: the provider's one thread of this domain, in process `self` ----
  bool has_guests() const noexcept { return kind_ != Kind::none; }
  // Does not wait.
  bool enter_as_guest(pid_t self) noexcept {
    return kind_ == Kind::biased ? biased_.enter_as_guest(self) : word_.try_lock();
  }
  void leave_as_guest() noexcept {
    kind_ == Kind::biased ? biased_.leave_as_guest() : word_.unlock();
  }
  // The program is inside, or wants to come in.
  bool is_awaited() const noexcept {
    return kind_ == Kind::biased ? is_inside(biased_.calls()) : word_.is_awaited();
  }
  // Changes with each call of the program's; any time.
  std::uint32_t calls() const noexcept {
    return kind_ == Kind::biased ? biased_.calls() : word_calls_.load(std::memory_order_relaxed);
  }
  // What BiasedLock::calls() said: the program is inside, or waits for that.
  static bool is_inside(std::uint32_t calls) noexcept { return (calls & 1) != 0; }

 private:
  const Kind kind_;
  BiasedLock biased_;
  WordLock word_;
  std::atomic<std::uint32_t> word_calls_{0};  // under word_
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
