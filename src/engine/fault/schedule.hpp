// The fault engine's schedule: its text, and what it does to the n-th piece. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace haul::fault {

// schedule = [rule {"," rule}]     no blanks; "" does nothing
// rule     = "delay=" N [at]       a piece finishes N polls later than it could (0 to 1000000)
//          | "delay=" N "us" [at]  and not before N microseconds (0 to 10000000)
//          | "partial=" P "%" [at] only P % of its bytes (0 to 100) are moved, and it fails
//          | "fail=" CODE [at]     it fails with CODE, with nothing moved but what `partial` says
//          | "die" at              the engine dies when this piece's turn has come
//          | "seed=" S             chance decides, in the same way for the same S: `delay` becomes
//                                  an upper bound, pieces finish in any order, and p_* are allowed
//          | "p_fail=" P | "p_partial=" P | "p_die=" P    chances in percent, 100 in all at most
//          | "stall" [at]          a piece never finishes, whatever `delay` lets it move
//          | "stray" [at]          before a piece, the end of one is reported that nobody gave it
//          | "excess" [at]         a piece ends with a byte more than it has
// at       = "@" N                 only the N-th piece since the start (1 is the first)
// CODE     = fault | no_memory | permission | peer_gone | not_supported | io
// A rule without `at` holds for every piece. A later rule of the same kind for the same piece
// replaces an earlier one. At most 16 rules; a failure for which no rule gives a code is io.
enum class RuleKind : std::uint8_t {
  delay_polls,
  delay_us,
  partial,
  fail,
  die,
  stall,
  stray,
  excess
};

struct Rule {
  RuleKind kind = RuleKind::delay_polls;
  Code code = Code::io;      // fail
  std::uint32_t amount = 0;  // polls, microseconds, percent
  std::uint64_t piece = 0;   // 0: every piece
};

struct Schedule {
  static constexpr std::size_t max_rules = 16;
  Rule rules[max_rules];
  std::size_t rule_count = 0;
  bool seeded = false;
  std::uint64_t seed = 0;
  std::uint32_t p_fail = 0, p_partial = 0, p_die = 0;

  bool empty() const noexcept { return rule_count == 0 && !seeded; }
};

struct Fate {
  std::uint32_t delay_polls = 0;
  std::uint32_t delay_us = 0;
  std::uint32_t good_percent = 100;
  Code code = Code::ok;
  bool dies = false;
  bool stalls = false, strays = false, exceeds = false;
};

// NULL or "" is the empty schedule. The error names the rule that is wrong.
Expected<Schedule> parse_schedule(const char* text) noexcept;

// The fate of piece number `piece` (1 is the first). The same for the same arguments, whatever came
// before.
Fate fate_of(const Schedule& schedule, std::uint64_t piece) noexcept;

// One step of a splitmix64 generator.
std::uint64_t next_random(std::uint64_t& state) noexcept;

}  // namespace haul::fault
