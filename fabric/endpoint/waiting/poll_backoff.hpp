// When a caller that polls in vain gives its core away. How long the last yield took tells who else
// wants the core:
//   nobody (it returned at once)    after about 20 microseconds;
//   another that waits, too         after one or two, more than an answer from a running peer
//   takes: (more ranks than cores)         the peer may be the one that gets the core; one that
//   does not wait: it      after about 100, in which a peer that runs has answered any took its
//   whole time slice       message but a very long one: a yield costs milliseconds.
#pragma once

#include <atomic>
#include <cstdint>

namespace haul::fabric {

// Thread-safe; racing callers may lose each other's counts, which costs a yield more or less.
class PollBackoff {
 public:
  void reset() noexcept { polls_.store(0, std::memory_order_relaxed); }
  // One more vain poll. True: it is time for give_way(), with no lock held.
  bool exhausted() noexcept {
    const std::uint32_t polls = polls_.load(std::memory_order_relaxed) + 1;
    polls_.store(polls, std::memory_order_relaxed);
    if (polls == uncounted_polls) begin();  // a clock costs as much as a poll
    return polls >= limit_.load(std::memory_order_relaxed);
  }
  void give_way() noexcept;

  static constexpr std::uint32_t least_polls = 64, most_polls = 8192;
  // The number of vain polls before the next yield, if `polls` of them took polled_ns before this
  // yield, which took away_ns. Pure.
  static std::uint32_t limit_after(std::uint32_t polls, std::uint64_t polled_ns,
                                   std::uint64_t away_ns) noexcept;

 private:
  static constexpr std::uint32_t uncounted_polls = 8;
  void begin() noexcept;

  std::atomic<std::uint32_t> polls_{0};
  std::atomic<std::uint32_t> limit_{256};
  std::atomic<std::uint64_t> began_ns_{0};
};

}  // namespace haul::fabric
