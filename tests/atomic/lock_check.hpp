// Checks what the members of the lock soak have written down, when all have ended.
#pragma once

#include <cstdint>
#include <string>

#include "tests/atomic/lock_board.hpp"

namespace atomic_test {

// What the referee found when it had the lock at last.
struct LockEnd {
  std::uint64_t token = 0;
  std::uint32_t value = 0;  // of the shared word, which began at 0
};

struct LockVerdict {
  std::string wrong;  // "": nothing is; else the first of all
  std::uint64_t holds = 0, done = 0, unknown = 0, stale = 0, interleaved = 0;
  std::uint64_t longest_wait_ns = 0;
};

LockVerdict check_lock(const Board& board, const LockEnd& end);

}  // namespace atomic_test
