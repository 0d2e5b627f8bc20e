#include "bench/remote/lock_pace.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::uint64_t acquire_timeout_ns = 10'000'000'000;

void pass_until(std::uint64_t until_ns, PacedLock::Pause pause) {
  for (std::uint64_t now = now_ns(); now < until_ns; now = now_ns()) {
    if (pause == PacedLock::Pause::sleep) {
      os::sleep_ns(until_ns - now);
    } else {
      __builtin_ia32_pause();
    }
  }
}

}  // namespace

PacedLock::PacedLock(const Pair& hosts, const ResponderChoice& responder, int responder_cpu,
                     int client_cpu)
    : home_(hosts.open_home(responder, responder_cpu)),
      // The client hears by completion map, whatever serves the home; nobody asks for this node's
      // own words.
      client_(open_node(
          hosts.client,
          fmt::format("{}:{}",
                      std::string(responder.name) == "xdp-native" ? "xdp-native" : "xdp-skb",
                      atomic_interface),
          client_cpu)),
      home_window_(make_window(home_, 4096)),
      own_window_(make_window(client_, 4096)) {
  const haul_atomic_lock_place home{name_of(home_window_), 0}, own{name_of(own_window_), 0};
  haul_atomic_lock_options options{};
  options.count = 1;
  options.home = &home;
  options.members = &own;
  lock_ = join_lock(client_, own_window_, options);
  operate();  // the first operation connects
  operate();
}

void PacedLock::operate() {
  tools::require(haul_atomic_lock_start(lock_.get(),
                                        held_ ? HAUL_ATOMIC_LOCK_RELEASE : HAUL_ATOMIC_LOCK_ACQUIRE,
                                        acquire_timeout_ns),
                 "haul_atomic_lock_start()");
  std::uint64_t token = 0;
  for (int done = 0; done == 0;) {
    done = haul_atomic_lock_test(lock_.get(), &token);
    tools::require(done, "haul_atomic_lock_test()");
  }
  held_ = !held_;
  ++operations_;
  if (!held_) return;
  if (token <= last_token_)
    throw tools::CommandFailure("a fencing token did not grow; this is a bug of haul");
  last_token_ = token;
}

void PacedLock::use(double rate_per_s, std::uint64_t ns, Pause pause) {
  const std::uint64_t begin = now_ns(), until = begin + ns;
  if (rate_per_s <= 0) {
    pass_until(until, pause);
    return;
  }
  const double period_ns = 1e9 / rate_per_s;
  for (double next = static_cast<double>(begin) + period_ns;;) {
    const auto next_ns = static_cast<std::uint64_t>(next);
    pass_until(std::min(next_ns, until), pause);
    const std::uint64_t asked = now_ns();
    if (asked >= until) return;
    operate();
    const std::uint64_t done = now_ns();
    times_us_.push_back(static_cast<double>(done - asked) / 1e3);
    // A late operation is not made up for: the home would see a burst.
    next = std::max(next + period_ns, static_cast<double>(done));
  }
}

void PacedLock::take_times_us(Samples* times_us) {
  times_us->insert(times_us->end(), times_us_.begin(), times_us_.end());
  times_us_.clear();
}

}  // namespace haul::bench
