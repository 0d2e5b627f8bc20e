// What the members of the lock soak tell its referee: memory that both have mapped, which outlives
// a member that is killed. One slot a member, written by that process alone (and by the next one in
// its place), read by the referee at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace atomic_test {

enum class Phase : std::uint32_t { starting, waiting, holding, releasing, resting, ended };
inline constexpr const char* phase_names[] = {"starting",  "waiting", "holding",
                                              "releasing", "resting", "ended"};

// Of a guarded increment.
enum class Fate : std::uint32_t {
  none,
  unknown,  // on its way: its member died before it was answered, or has yet to hear
  done,
  stale
};

struct Increment {
  std::atomic<Fate> fate;
  std::uint32_t value;  // that it leaves
};

// One time that a member had the lock. Times are of the monotonic clock, which all share.
struct Hold {
  static constexpr unsigned most_increments = 3;
  std::uint64_t token;
  std::uint64_t asked_ns, held_ns;           // acquire was called; had returned
  std::atomic<std::uint64_t> safe_until_ns;  // nobody else could have it before; 0: not known
  std::atomic<std::uint64_t> let_go_ns;      // release was about to be called; 0: never
  Increment increments[most_increments];
};

// Of haul_atomic_lock_counts, and more.
struct LockTally {
  std::atomic<std::uint64_t> handed, taken_over, requeued, forced, skipped;
  std::atomic<std::uint64_t> gave_up, renewed, lost, reopened;
  std::atomic<std::uint64_t> unnoticed;  // released without an error, though refused as stale
  std::atomic<std::uint64_t>
      by_program;  // replies that an XDP program heard, of who was not killed
};

struct Slot {
  static constexpr std::size_t most_holds = std::size_t{1} << 18;
  std::atomic<Phase> phase;
  std::atomic<std::uint64_t> progress;     // changes of phase
  std::atomic<std::uint64_t> interleaved;  // increments that found another's in between
  LockTally tally;
  char complaint[256];  // why the process has ended with 1
  std::atomic<std::uint64_t> hold_count;
  Hold holds[most_holds];  // as many are whole
};

struct Board {
  static constexpr unsigned most_members = 5;
  std::atomic<std::uint32_t> stop;  // members end when they can
  Slot slots[most_members];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<Phase>::is_always_lock_free);

// A descriptor of zeroed memory for a board, which children of exec keep; failures are
// tools::CommandFailure.
int make_board();
std::shared_ptr<Board> map_board(int descriptor);

std::uint64_t monotonic_ns();

}  // namespace atomic_test
