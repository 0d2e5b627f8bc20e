// Finds out by trying which way is fastest for messages of one peer and one size.
//
// Neither side can tell in advance. One copy beats two as long as nobody rewrites the buffer, and
// may lose when somebody does: then the sender pays for fetching its lines back, before it sends,
// where no transfer's own time shows it. And what is written past the caches is sooner there, but
// its reader has to fetch it from memory. So what is compared is the time from the end of one
// message to the end of the next, with all that lies between. Where a program mostly computes, the
// ways differ by less than its own ups and downs, and it does not matter which is taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fabric/protocol/message_way.hpp"

namespace haul::fabric {

class Trial {
 public:
  // `first_interval`: how many messages go by before the first trial.
  explicit Trial(unsigned first_interval = usual_interval) noexcept
      : first_interval_(first_interval), interval_(first_interval) {}

  // How the next message comes: its usual way until something is learned.
  MessageWay choose(MessageWays ways) noexcept;
  // A message is here, at now_ns. `alone`: no other one of its peer was under way meanwhile, else
  // nothing is learned from it.
  void done(std::uint64_t now_ns, bool alone) noexcept;

  // Messages that a trial takes: the first of them, whose buffers still lie where the other way
  // left them, and those that count, fewer if the first ones take much longer than usual. Then how
  // many go by between two rounds of trials, at first and at most.
  static constexpr unsigned settling = 3, counted = 6, counted_at_least = 2;
  static constexpr unsigned usual_interval = 64, longest_interval = 1024;

 private:
  bool is_hopeless() const noexcept;
  void conclude() noexcept;
  void begin() noexcept;
  void go_on(bool trying) noexcept;

  bool begun_ = false, trying_ = false, won_once_ = false;
  MessageWays ways_ = MessageWay::pieces;
  MessageWay best_ = MessageWay::pieces, rival_ = MessageWay::pieces, chosen_ = MessageWay::pieces;
  // Rivals are tried in rounds, one soon after the other.
  unsigned lost_ = 0;  // those of this round that have lost
  unsigned first_interval_, interval_;
  unsigned until_trial_ = interval_;
  unsigned messages_ = 0;      // of this phase
  unsigned gaps_ = 0;          // of this phase, that count
  std::uint64_t last_ns_ = 0;  // when the message before was done; 0: not comparable
  std::array<std::uint64_t, counted> usual_gaps_{}, trial_gaps_{};  // ns
};

// A peer's trials, one for each power of two, the last one also for all that is longer. Shorter
// messages go unasked. Of long ones programs send few, so the first trial comes sooner.
class Trials {
 public:
  static constexpr unsigned least_log2 = 14, most_log2 = 24;
  Trials() noexcept;
  // nullptr: nothing is tried with this length.
  Trial* of(std::size_t bytes) noexcept;

 private:
  std::array<Trial, most_log2 - least_log2 + 1> trials_;
};

}  // namespace haul::fabric
