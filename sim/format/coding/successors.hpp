// Which instruction followed which: what the writer and the reader of a trace both remember, so
// that only surprises need be written.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "format/instruction.hpp"

namespace bcisim {

// The first successor of an instruction is what is always expected: it never changes, so a path
// taken again is written in the same bytes, which zstd finds again. Others are numbered as they
// come.
class Successors {
 public:
  static constexpr std::uint32_t none = 0x7fffffff;
  static constexpr unsigned most_others = 6;

  // Of the next static instruction.
  void add() { firsts_.push_back({none, 0, 0, false}); }

  // The lowest index that has not been executed: expected where no successor is known.
  std::uint32_t fresh() const { return fresh_; }

  // The first successor, or none. `taken`: this is a branch and that is not the instruction behind
  // it.
  struct Expected {
    std::uint32_t next;
    bool taken;
  };
  Expected first(std::uint32_t from) const {
    const First& known = firsts_[from];
    return {known.next, known.taken};
  }

  unsigned others(std::uint32_t from) const { return firsts_[from].count; }
  std::uint32_t other(std::uint32_t from, unsigned number) const {
    return others_[firsts_[from].others][number];
  }

  // `next` came after `from`, neither as the first nor as one of the others.
  void learn(std::uint32_t from, std::uint32_t next, bool taken) {
    First& known = firsts_[from];
    if (known.next == none) {
      known.next = next;
      known.taken = taken;
    } else if (known.count < most_others) {
      if (known.count == 0) {
        known.others = static_cast<std::uint32_t>(others_.size());
        others_.emplace_back();
      }
      others_[known.others][known.count++] = next;
    }
    if (next >= fresh_) fresh_ = next + 1;
  }

 private:
  struct First {
    std::uint32_t next;
    std::uint32_t others;
    std::uint8_t count;
    bool taken;
  };

  std::vector<First> firsts_;
  std::vector<std::array<std::uint32_t, most_others>> others_;
  std::uint32_t fresh_ = 0;
};

}  // namespace bcisim
