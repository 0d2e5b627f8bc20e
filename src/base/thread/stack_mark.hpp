// A mark on a thread's stack that can be found dangling: a fault's handler may leave a function of
// haul's by siglongjmp(), and then no destructor runs. A function that later finds the mark set
// must know whether the marked one is still under way (a signal handler interrupted it and calls
// haul) or gone.
#pragma once

#include <cstdint>

#include "base/machine/cpu.hpp"

namespace haul {

class StackMark {
 public:
  // (Inline, so that the stack pointer is the maker's.)
  [[gnu::always_inline]] StackMark() noexcept
      : stack_(stack_pointer()), check_(check_of(this, stack_)) {}
  StackMark(const StackMark&) = delete;
  StackMark& operator=(const StackMark&) = delete;

  // Is the function that made the mark gone? To be asked on the thread that made it, by a function
  // whose stack pointer is `now`. True if the mark's frame lies below `now`, within 64 KiB and not
  // because this runs on an alternate signal stack, or if its bytes have been overwritten. So it is
  // false in a handler on whatever stack and, rarely, for a mark that is gone and by chance still
  // whole. The mark may lie in memory that is unmapped by now. Two or three system calls;
  // async-signal-safe.
  static bool left_behind(const StackMark* mark, std::uintptr_t now) noexcept;

 private:
  static std::uintptr_t check_of(const StackMark* mark, std::uintptr_t stack) noexcept {
    return reinterpret_cast<std::uintptr_t>(mark) ^ stack << 7 ^ 0x5bd1e995'9e3779b9;
  }

  std::uintptr_t stack_;  // the stack pointer where it was made
  std::uintptr_t check_;
};

}  // namespace haul
