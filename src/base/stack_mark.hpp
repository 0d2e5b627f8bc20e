// A mark on a thread's stack that can be found dangling: a fault's handler may leave a function of
// haul's by siglongjmp(), and then no destructor runs. Whoever finds the mark set later must know
// whether the function is still under way (a signal handler interrupted it and calls haul) or gone.
#pragma once

#include <cstdint>

#include "base/cpu.hpp"

namespace haul {

class StackMark {
 public:
  // (Inline: the stack pointer is to be the maker's.)
  [[gnu::always_inline]] StackMark() noexcept
      : stack_(stack_pointer()), check_(check_of(this, stack_)) {}
  StackMark(const StackMark&) = delete;
  StackMark& operator=(const StackMark&) = delete;

  // Asked on the thread that made the mark, by a function whose stack pointer is `now`: is what
  // made it gone? True where the mark's frame lies below, within 64 KiB and not because this runs
  // on an alternate signal stack, or where its bytes have been overwritten. So false of a handler
  // on whatever stack, and, seldom, of a mark that is gone and by chance still whole. The mark may
  // lie in memory that is unmapped by now. Two or three system calls; async-signal-safe.
  static bool left_behind(const StackMark* mark, std::uintptr_t now) noexcept;

 private:
  static std::uintptr_t check_of(const StackMark* mark, std::uintptr_t stack) noexcept {
    return reinterpret_cast<std::uintptr_t>(mark) ^ stack << 7 ^ 0x5bd1e995'9e3779b9;
  }

  std::uintptr_t stack_;  // the stack pointer where it was made
  std::uintptr_t check_;
};

}  // namespace haul
