// Overlap: with manual progress (MPIs ask for no other) nothing moves while both sides of a message
// compute. Where a core is free, one thread a domain makes progress meanwhile, from the time on
// when a large request is under way and the program has made no call for some microseconds, until
// the program calls again.
//
// Quiet where it cannot help. The program pays a store and a load a call for the lock (lock.hpp), a
// comparison a request, and at most one wake-up each time that it begins to send or receive large
// messages:
//   asleep   No large request is under way. The next one rings, but not within 250 us of time
//            that was spent in vain (the program waits for its messages itself).
//   watching It holds nothing and looks at the lock's count of calls. When that stands still it
//            takes a turn. While the program goes on calling, it naps for a millisecond, or until
//            the next large request rings.
//   turn     It holds the lock, polls, and copies by itself. It ends when the program wants to come
//            in (which waits for one chunk at most), a fork waits, or no large request is left.
//   armed    A turn in which nothing happened for 200 us: it sleeps, and peers ring for packets.
//
// The thread is made at the first large request that finds a core free, and looks again every 10 ms
// whether one still is.
#pragma once

#include <atomic>
#include <cstdint>

#include "fabric/endpoint/waiting/domain_thread.hpp"

namespace haul::fabric {

class OverlapThread final : public DomainThread {
 public:
  // Starts nothing. The domain must outlive it, and its lock exist already.
  explicit OverlapThread(Domain& domain) noexcept;
  ~OverlapThread() { stop(); }

  // Whether the knob and the CPUs of this process leave it a chance.
  static bool may_help() noexcept;
  // ... and the domain has manual progress.
  bool may_run() const noexcept { return may_run_; }

  // Under the data lock: the program has made a large request.
  void posted() noexcept;

 private:
  bool rest(bool refused) noexcept override;
  bool turn() noexcept override;
  bool sleep_until_asked() noexcept;
  bool watch() noexcept;
  void idle() noexcept;
  void listen_later() noexcept;
  bool core_is_free() noexcept;
  bool has_work() const noexcept;
  bool is_interrupted() const noexcept;

  const bool may_run_;
  std::atomic<std::uint64_t> posted_{0};  // large requests; written under the data lock
  bool given_up_ = false;                 // under the data lock
  // Whether posted() rings, and not before when. Both are written by either side without any order:
  // a ring that is lost so comes with the next request, or is made up for within a second.
  std::atomic<bool> asleep_{false};
  std::atomic<std::uint64_t> silent_until_ns_{0};
  // The thread's own:
  std::uint64_t handled_ = 0;  // of posted_
  bool left_ = false;          // the last turn left large requests under way
  bool armed_ = false;
  bool sleeps_ = false;         // it has nothing to do before it is asked
  bool helped_ = false;         // the last turn moved something
  bool useful_ = false;         // a turn since it last began to listen has
  std::uint64_t pause_ns_ = 0;  // before the next look, while nothing can be done but to wait
  std::uint64_t free_ns_ = 0;   // when it last looked for a free core
  bool free_ = true;
};

}  // namespace haul::fabric
