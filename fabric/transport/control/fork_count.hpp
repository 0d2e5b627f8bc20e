// Forks that are under way, as a prepare handler and its parent and child handlers count them.
//
// A signal handler may fork while its thread runs such handlers for another fork. Its child begins
// with no fork under way, and then goes on in the middle of the outer fork, to that fork's parent
// handlers or into a child of its own. So a thread takes back no more than it has counted in this
// process.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul::fabric {

class ForkCount {
 public:
  // The calling thread's part of a count: a thread_local variable beside it.
  using Own = std::uint32_t;

  // Sequentially consistent.
  std::uint32_t all() const noexcept { return all_.load(std::memory_order_seq_cst); }

  // ---- fork handlers ----
  void begin(Own& own) noexcept;
  // In the parent. Nothing where the fork began in this process's parent.
  void end(Own& own) noexcept;
  // In the child: no fork is under way. False: this one was not counted when it made the copy.
  bool forget(Own& own) noexcept;

 private:
  std::atomic<std::uint32_t> all_{0};  // several threads may fork at once
};

}  // namespace haul::fabric
