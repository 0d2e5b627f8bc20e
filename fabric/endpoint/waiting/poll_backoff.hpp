// When a caller that polls in vain gives its core away: after about 20 microseconds where nobody
// else wants the core. Where a yield shows that somebody does (more ranks than cores), it is one or
// two microseconds, which is more than an answer from a running peer takes, until yields return at
// once again.
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

 private:
  static constexpr std::uint32_t least_polls = 64, most_polls = 8192, uncounted_polls = 8;
  void begin() noexcept;

  std::atomic<std::uint32_t> polls_{0};
  std::atomic<std::uint32_t> limit_{256};
  std::atomic<std::uint64_t> began_ns_{0};
};

}  // namespace haul::fabric
