// What the mover threads' lives (thread.cpp) and their making and ending (roster.cpp) share.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "mover/loop.hpp"
#include "mover/mover.hpp"

namespace haul {

// none: there is no such thread. over: it has ended as it was told to, and must be joined.
enum class Life : std::uint32_t { none, running, over };

struct MoverThread {
  pthread_t thread{};
  MoverLoop loop;
  unsigned index = 0;
  std::atomic<std::uint32_t> life{0};  // a Life; futex word

  Life now() const noexcept { return static_cast<Life>(life.load(std::memory_order_acquire)); }
  void become(Life state) noexcept {
    life.store(static_cast<std::uint32_t>(state), std::memory_order_release);
  }
};

struct Crew {
  MoverThread movers[max_movers];
  std::atomic<bool> stopping{false};
  std::atomic<int> first_cpu{-1};
  std::atomic<int> submitter_cpu{-1};  // of the thread that woke the mover last
  // Raised when the first mover wakes or ends: the other movers follow it.
  std::atomic<std::uint32_t> party{0};
};
extern constinit Crew crew;

// ---- thread.cpp ----
void* live(void* mover) noexcept;
// Called when the first mover's thread has ended: waits for the measurement that it may have begun
// (0.2 ms).
void tidy_after_first_mover() noexcept;
// For a child of fork, in which there is no such thread.
void forget_first_mover() noexcept;

// Called by a mover that has slept while no thread had a ring. False if it is needed after all;
// after true its state must not be touched any more, and its thread ends.
bool retire(MoverThread& self) noexcept;
// May a mover beyond the first retire?
bool first_is_gone() noexcept;

}  // namespace haul
