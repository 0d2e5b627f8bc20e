// When the overlap thread helps, and when it keeps out of the way.
#include "fabric/endpoint/waiting/overlap_thread.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/machine/busy.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/sync/barrier.hpp"
#include "fabric/endpoint/domain.hpp"
#include "fabric/transport/spare_core.hpp"

namespace haul::fabric {

namespace {

constexpr std::uint64_t knob_on = 1, knob_off = 2;

// A program that polls calls several times in this time.
constexpr std::uint64_t quiet_ns = 2'000;
// How long it watches before it sleeps or naps, and how long a turn waits for a packet.
constexpr std::uint64_t patience_ns = 200'000;
constexpr std::uint64_t short_patience_ns = 50'000;  // after it was woken, or napped
constexpr int nap_ms = 1;
constexpr std::uint64_t silence_ns = 250'000;  // after time spent in vain
constexpr std::uint64_t shortest_pause_ns = 20'000, longest_pause_ns = 1'000'000;
constexpr std::uint64_t look_for_core_ns = 10'000'000;
constexpr unsigned pauses = 8;  // between two looks

void pause_briefly() noexcept {
  for (unsigned i = 0; i < pauses; ++i) __builtin_ia32_pause();
}

std::uint64_t longer(std::uint64_t last, std::uint64_t least, std::uint64_t most) noexcept {
  return std::clamp(2 * last, least, most);
}

}  // namespace

// Of three CPUs two are the least that exchange messages.
bool OverlapThread::may_help() noexcept {
  const std::uint64_t knob = knob_number(Knob::fabric_overlap);
  if (knob == knob_off) return false;
  constexpr std::size_t least_processes = 2;
  return (knob == knob_on || cores_exceed(least_processes)) && asymmetric_barrier_works();
}

OverlapThread::OverlapThread(Domain& domain) noexcept
    : DomainThread(domain, "haul-overlap"),
      may_run_(!domain.automatic && domain.lock.has_guests() && may_help()) {}

void OverlapThread::posted() noexcept {
  const std::uint64_t count = posted_.load(std::memory_order_relaxed) + 1;
  posted_.store(count, std::memory_order_relaxed);
  if (given_up_) return;
  if (wait_ == nullptr) {
    // Peers may go, but mostly they come: it asks rarely.
    if (!std::has_single_bit(count) || !core_is_free()) return;
    if (const int error = start(); error != 0) {
      given_up_ = true;
      log(LogLevel::info, "messages: no thread moves them while the program computes: %s",
          describe_errno(-error));
      return;
    }
    domain_.endpoints.watch(*wait_);
    return;
  }
  if (asleep_.load(std::memory_order_relaxed) &&
      now_ns() >= silent_until_ns_.load(std::memory_order_relaxed)) {
    asleep_.store(false, std::memory_order_relaxed);
    wait_->ring();
  }
}

// Under the data lock.
bool OverlapThread::core_is_free() noexcept {
  return knob_number(Knob::fabric_overlap) == knob_on ||
         cores_exceed(domain_.endpoints.node_processes());
}

bool OverlapThread::has_work() const noexcept {
  return left_ || posted_.load(std::memory_order_relaxed) != handled_;
}

bool OverlapThread::is_interrupted() const noexcept {
  return domain_.lock.is_awaited() || fork_waits() || stopping();
}

bool OverlapThread::rest(bool) noexcept {
  if (sleeps_ && !sleep_until_asked()) return false;
  if (pause_ns_ != 0) os::sleep_ns(pause_ns_);
  if (knob_number(Knob::fabric_overlap) != knob_on) {
    const std::uint64_t now = now_ns();
    if (now - free_ns_ >= look_for_core_ns) {
      free_ns_ = now;
      free_ = !cpus_are_taken();
    }
    if (!free_ && has_work()) {
      os::sleep_ns(look_for_core_ns);
      return false;
    }
  }
  return watch();
}

// False: nobody has asked, but a second is over, or it is to stop.
bool OverlapThread::sleep_until_asked() noexcept {
  wait_->sleep(-1);
  if (!has_work()) {
    wait_->quiet();
    return false;
  }
  sleeps_ = false;
  return true;
}

// True: the program calls nothing although there is work; or it is time to go to sleep.
bool OverlapThread::watch() noexcept {
  const std::uint64_t begun = now_ns();
  const std::uint64_t patience = helped_ ? patience_ns : short_patience_ns;
  std::uint64_t changed = begun;
  std::uint32_t seen = domain_.lock.calls();
  for (std::uint64_t now = begun; !stopping(); now = now_ns()) {
    const std::uint32_t calls = domain_.lock.calls();
    // (A thread of the program's that is being woken for the lock must not find it taken again.)
    if (calls != seen || domain_.lock.is_awaited()) {
      seen = calls;
      changed = now;
    } else if (now - changed >= quiet_ns && has_work()) {
      return true;
    }
    if (now - begun >= patience) {
      helped_ = false;
      if (!has_work() || armed_)
        return true;  // a doorbell that has rung wakes until it is disarmed
      listen_later();
      wait_->sleep(nap_ms);
      wait_->quiet();
      return false;
    }
    pause_briefly();
  }
  return false;
}

void OverlapThread::listen_later() noexcept {
  silent_until_ns_.store(useful_ ? 0 : now_ns() + silence_ns, std::memory_order_relaxed);
  useful_ = false;
  asleep_.store(true, std::memory_order_relaxed);
}

bool OverlapThread::turn() noexcept {
  copy_on_this_thread();
  ProgressGroup& endpoints = domain_.endpoints;
  if (armed_) endpoints.disarm();
  armed_ = sleeps_ = helped_ = false;
  asleep_.store(false, std::memory_order_relaxed);
  wait_->quiet();
  if (stopping()) return false;
  if (!core_is_free()) {  // more processes have come
    given_up_ = sleeps_ = true;
    return true;
  }
  handled_ = posted_.load(std::memory_order_relaxed);
  left_ = false;
  for (std::uint64_t last = now_ns(); endpoints.expects_bulk();) {
    if (endpoints.progress()) {
      last = now_ns();
      helped_ = useful_ = true;
      pause_ns_ = 0;
    } else if (now_ns() - last >= patience_ns) {
      idle();
      return true;
    } else {
      pause_briefly();
    }
    if (is_interrupted()) {
      left_ = true;
      return true;
    }
  }
  // After it has helped it watches for a while: the program is likely to do the same again.
  if (helped_) return true;
  listen_later();
  sleeps_ = true;
  return true;
}

// Large requests are under way, and nothing happens.
void OverlapThread::idle() noexcept {
  ProgressGroup& endpoints = domain_.endpoints;
  left_ = true;
  endpoints.arm();
  armed_ = true;
  const bool active = endpoints.progress();
  if (!active && endpoints.idle()) {
    asleep_.store(true, std::memory_order_relaxed);
    sleeps_ = true;
  } else if (!active) {
    pause_ns_ = longer(pause_ns_, shortest_pause_ns, longest_pause_ns);
  }
}

}  // namespace haul::fabric
