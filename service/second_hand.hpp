// A second pair of hands for large pieces: a thread that takes half of one while a core is idle,
// and only then. It runs at SCHED_IDLE, so it never takes time from a program that computes; a
// client that waits for its copy leaves its core idle, and then the service's one core need not
// move everything alone. (Where the memory is its own, the waiter helps by itself; granted memory
// it cannot reach.)
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>

#include "engine/engine.hpp"

namespace haul::service {

// One thread uses it, the service's.
class SecondHand {
 public:
  // To be made before the calling thread is pinned: the hand may run wherever that may, but on
  // own_cpu. Starts no thread yet. own_cpu < 0, or no other CPU: it never helps.
  explicit SecondHand(int own_cpu);
  ~SecondHand();
  SecondHand(const SecondHand&) = delete;
  SecondHand& operator=(const SecondHand&) = delete;

  // Moves a piece of mapped memory by engine cpu, its second half elsewhere if that helps. memmove
  // semantics are kept. The progress that is published is that of the front.
  Outcome move(const Piece& piece);

  std::uint64_t halves() const { return halves_; }  // moved by the hand so far

 private:
  enum class Half : std::uint32_t { none, offered, taken, done };

  static void* run(void* hand);
  void work();
  bool wanted(const Piece& piece);
  bool start();
  void summon();
  void take_back();
  void await_done();

  // Written by both.
  alignas(64) std::atomic<Half> half_{Half::none};
  std::atomic<std::uint32_t> asleep_{1};  // futex word: 1 while the hand sleeps
  std::atomic<bool> ending_{false}, awaited_{false};
  Piece piece_;  // the half on offer; the hand's while it is taken

  // The service's thread alone.
  alignas(64) cpu_set_t elsewhere_{};
  bool possible_ = false, started_ = false;
  int own_cpu_ = -1;
  std::atomic<int> thread_id_{0};
  pthread_t thread_{};
  std::uint64_t retry_ns_ = 0, pause_ns_ = 0, halves_ = 0;
};

}  // namespace haul::service
