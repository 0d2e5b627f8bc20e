// Threads that run all the time: two for each CPU of the machine, and one more.
#pragma once

#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace haul {

class Spinners {
 public:
  // All of them run or want to when this returns.
  Spinners() {
    const unsigned count = 2 * static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN)) + 1;
    for (unsigned i = 0; i < count; ++i)
      threads_.emplace_back([this] {
        begun_.fetch_add(1);
        while (!done_.load(std::memory_order_relaxed)) {
        }
      });
    while (begun_.load() < count) std::this_thread::yield();
  }
  ~Spinners() {
    done_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
  }
  Spinners(const Spinners&) = delete;
  Spinners& operator=(const Spinners&) = delete;

 private:
  std::atomic<bool> done_{false};
  std::atomic<unsigned> begun_{0};
  std::vector<std::thread> threads_;
};

}  // namespace haul
