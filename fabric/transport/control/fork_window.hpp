// A fork of the program's, from the first of haul's handlers before it to the last after it.
// Nothing is held meanwhile: the program's own handlers may wait for a lock under which another of
// its threads calls this provider. Instead the provider's threads stand still (for a while: a
// program that joins them may be what the fork waits for), and whoever changes something after all
// says so, so that the child knows that it has got no consistent copy.
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
// In the parent. Nothing where it was opened in this process's parent: a handler has forked amid
// other fork handlers.
void close() noexcept;
// In the child, where it is closed then. False: its copy of what the lock covers need not be
// consistent, since something was changed, or since the window was not open in its parent.
bool close_in_child() noexcept;

}  // namespace haul::fabric::fork_window
