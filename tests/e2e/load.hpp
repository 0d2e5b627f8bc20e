// Threads that keep the library busy while a test does something else, and what such tests cannot
// do under a sanitizer.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support.hpp"

// ThreadSanitizer has no threads in such a child; AddressSanitizer's allocator is locked there if
// another thread was in it, and its leak check at exit then waits for ever.
#define SKIP_UNDER_SANITIZERS() \
  if (sanitizer) GTEST_SKIP() << "a sanitizer's own locks do not survive a fork of threads"

namespace e2e {

// Threads that copy and verify all the time, until told to stop.
class Load {
 public:
  explicit Load(unsigned threads) {
    for (unsigned t = 0; t < threads; ++t) threads_.emplace_back([this, t] { run(t); });
    while (rounds_ < 4 * threads) sched_yield();
  }
  ~Load() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  unsigned rounds() const { return rounds_; }

 private:
  void run(unsigned t) {
    const Buffer src(512 * kib), dst(512 * kib);
    src.fill(t + 100);
    while (!stop_) {
      dst.clear();
      haul_ticket tickets[4];
      const std::size_t part = src.size() / 4;
      for (std::size_t i = 0; i < 4; ++i)
        tickets[i] = haul_copy(dst.data() + i * part, src.data() + i * part, part);
      for (std::size_t i = 0; i < 4; ++i) {
        if (t % 2 == 0) {
          while (haul_test(tickets[i]) == 0) sched_yield();
        }
        CHILD_EQUAL(haul_wait(tickets[i]), 0);
      }
      CHILD_EQUAL(std::memcmp(dst.data(), src.data(), src.size()), 0);
      ++rounds_;
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<unsigned> rounds_{0};
  std::vector<std::thread> threads_;
};

}  // namespace e2e
