// How a thread that waits for a request backs off between its looks: it spins, then yields, then
// sleeps; while a device works whose speed is known it sleeps at once (paper 001, VI), for half of
// the time that the device still needs, since that is an estimate.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/machine/clock.hpp"
#include "base/machine/cpu.hpp"
#include "base/os/os.hpp"
#include "base/sync/lateness.hpp"
#include "completion/tenancy.hpp"

namespace haul {

inline constexpr std::uint64_t no_deadline = UINT64_MAX;

class WaitPace {
 public:
  // What the waiter looks at: the end of a tenancy wakes its sleepers, the growth of a watermark
  // does not, nor does a device that this very waiter must poll. brief: this waiter cannot help, so
  // its core is better left to a thread that can.
  enum class Until : std::uint8_t { end, range, polled };
  explicit WaitPace(std::uint64_t deadline_ns, Until until, bool brief = false) noexcept
      : deadline_ns_(deadline_ns),
        until_(until),
        spins_(brief ? brief_spins : spins_before_yield),
        yields_(brief ? 0 : yields_before_sleep) {}

  // What is waited for has come forward.
  void start_over() noexcept {
    turns_ = 0;
    slow_since_ns_ = 0;
  }

  // False when the deadline has passed. left_ns: what the device that is polled still needs; 0:
  // there is none, or nobody knows.
  bool wait(const Tenancy& tenancy, std::uint64_t left_ns = 0) noexcept {
    if (left_ns != 0)
      if (const std::uint64_t nap = nap_ns(left_ns); nap != 0) return sleep(tenancy, nap);
    ++turns_;
    if (turns_ <= spins_) {
      cpu_relax();
      if (deadline_ns_ == no_deadline || turns_ % 32 != 0) return true;
      return now_ns() < deadline_ns_;
    }
    const std::uint64_t now = now_ns();
    if (now >= deadline_ns_) return false;
    if (slow_since_ns_ == 0) {
      slow_since_ns_ = now;
      // A real-time thread's yields let only other real-time threads run.
      if (os::real_time_thread()) yields_ = 0;
    }
    if (turns_ <= spins_ + yields_) {
      os::yield();
    } else {
      tenancy.sleep(std::min(slice_ns(now), deadline_ns_ - now));
    }
    return true;
  }

 private:
  static constexpr unsigned spins_before_yield = 4000;  // about 100 us: longer than most chunks
  static constexpr unsigned brief_spins =
      600;  // about 15 us: longer than a small copy by the service
  static constexpr unsigned yields_before_sleep = 64;
  static constexpr std::uint64_t sleep_slice_ns = 20'000'000;
  static constexpr std::uint64_t shortest_look_ns = 50'000, longest_look_ns = 1'000'000;

  // Of an estimate that has not changed only what is left of it counts, and nothing once it is
  // over.
  std::uint64_t nap_ns(std::uint64_t left_ns) noexcept {
    const std::uint64_t now = now_ns();
    if (left_ns != left_ns_) due_ns_ = now + left_ns;
    left_ns_ = left_ns;
    return now < due_ns_ ? lateness.nap_ns(due_ns_ - now) : 0;
  }
  bool sleep(const Tenancy& tenancy, std::uint64_t nap) noexcept {
    const std::uint64_t begun = now_ns();
    if (begun >= deadline_ns_) return false;
    nap = std::min(nap, deadline_ns_ - begun);
    tenancy.sleep(nap);
    const std::uint64_t slept = now_ns() - begun;
    if (slept >= nap) lateness.note(nap, slept);  // (else it was woken)
    return true;
  }
  // Whoever nobody wakes looks again after an eighth of the time that he has waited so far.
  std::uint64_t slice_ns(std::uint64_t now) const noexcept {
    if (until_ == Until::end) return sleep_slice_ns;
    return std::clamp((now - slow_since_ns_) / 8, shortest_look_ns, longest_look_ns);
  }

  std::uint64_t deadline_ns_;
  Until until_;
  unsigned spins_, yields_;
  unsigned turns_ = 0;
  std::uint64_t slow_since_ns_ = 0;
  std::uint64_t left_ns_ = 0, due_ns_ = 0;
};

}  // namespace haul
