// Turns and pauses of the progress thread.
#include "fabric/endpoint/waiting/progress_thread.hpp"

#include <algorithm>

#include "base/os/os.hpp"
#include "fabric/endpoint/domain.hpp"

namespace haul::fabric {

namespace {

constexpr std::uint64_t until_rung = ~std::uint64_t{0};
// Between turns while the program polls, and at most while a copy or a full ring is waited for.
constexpr std::uint64_t long_pause_ns = 1'000'000;
constexpr std::uint64_t short_pause_ns = 20'000;

}  // namespace

void ProgressThread::wake() noexcept {
  asleep_ = false;
  wait_->ring();
}

bool ProgressThread::rest(bool refused) noexcept {
  if (refused) {
    os::sleep_ns(short_pause_ns);
  } else if (pause_ns_ == until_rung) {
    wait_->sleep(-1);
  } else if (pause_ns_ != 0) {
    os::sleep_ns(pause_ns_);
  } else {
    os::yield();  // lets a thread that waits for the lock have it
  }
  return true;
}

bool ProgressThread::turn() noexcept {
  ProgressGroup& endpoints = domain_.endpoints;
  if (armed_) endpoints.disarm();
  armed_ = asleep_ = false;
  wait_->quiet();
  if (stopping()) return false;

  const bool program_polls = domain_.turns != seen_;
  bool active = endpoints.progress();
  if (!program_polls && !active && endpoints.idle()) {
    endpoints.arm();
    armed_ = true;
    active = endpoints.progress();
  }
  seen_ = domain_.turns;
  if (program_polls) {
    pause_ns_ = long_pause_ns;
  } else if (active) {
    pause_ns_ = 0;
  } else if (armed_ && endpoints.idle()) {
    pause_ns_ = until_rung;
    asleep_ = true;
  } else {
    // From until_rung, too, which is the largest.
    const std::uint64_t last_ns = pause_ns_ == until_rung ? 0 : pause_ns_;
    pause_ns_ = std::clamp(2 * last_ns, short_pause_ns, long_pause_ns);
  }
  return true;
}

}  // namespace haul::fabric
