// The window of a fork: the time from the first of haul's fork handlers before it to the last after
// it. The usual way is to hold all locks meanwhile, so that the child gets a consistent copy. Here
// that would deadlock: the program's own handlers run in the window too, and may wait for a lock
// under which another thread of the program calls this provider. So nothing is held, and three
// rules take its place:
//   1. The provider's own threads see the window (is_open()) and stand still, a second at most: the
//      fork may wait for the program to join one of them.
//   2. A thread of the program's waits 20 ms before it takes the lock (Newcomer). If the fork is
//      not over by then, it may be waiting for this very thread, so the thread goes on.
//   3. A thread that changes something within the window says so (note_change()). The child asks
//      (close_in_child()), and where its copy need not be consistent, it leaves what the parent had
//      open alone.
// Count and flag are sequentially consistent: either the fork sees the change, or the thread that
// makes it sees the fork.
#pragma once

#include <cstdint>

namespace haul::fabric::fork_window {

// A thread of the program's that is about to take the lock waits for a fork to be over, but not
// long: the fork may wait for a lock that this thread holds.
struct Newcomer {
  Newcomer() noexcept {
    if (is_open()) [[unlikely]]
      wait(newcomer_patience_ns);
  }
  static constexpr std::uint64_t newcomer_patience_ns = 20'000'000;
  static bool is_open() noexcept;
  static void wait(std::uint64_t most_ns) noexcept;
};

// ---- the provider's own threads ----
// Waits until no fork is under way, a second at most.
void let_pass() noexcept;
inline bool is_open() noexcept {
  return Newcomer::is_open();
}

// With the lock held: something may be changed from now on.
void note_change() noexcept;

// ---- fork handlers ----
void open() noexcept;
// Everything stands still now: what was changed before is in the child's copy.
void stands_still() noexcept;
// In the parent. Nothing where it was opened in this process's parent: a handler has forked
// between other fork handlers.
void close() noexcept;
// In the child, where it is closed then. False: its copy of what the lock covers need not be
// consistent, since something was changed, or since the window was not open in its parent.
bool close_in_child() noexcept;

}  // namespace haul::fabric::fork_window
