#include "model/fast/bus.hpp"

#include <algorithm>

namespace bcisim {

Cycle FastBus::read(Cycle at) {
  forget();
  const Cycle begin = with_mshr(at);
  ++blocks_;
  const Cycle ready = carry_read(begin + memory_cycles_ - transfer_cycles_);
  misses_.push_back({begin, ready});
  return ready;
}

Cycle FastBus::write(Cycle at) {
  forget();
  ++blocks_;
  return carry_write(at);
}

// The first cycle from `at` on in which an MSHR is free.
Cycle FastBus::with_mshr(Cycle at) const {
  if (misses_.size() < mshrs_) return at;
  for (;;) {
    unsigned busy = 0;
    Cycle next_end = ~Cycle{0};
    for (const Miss& miss : misses_) {
      if (miss.begin <= at && at < miss.end) {
        ++busy;
        next_end = std::min(next_end, miss.end);
      }
    }
    if (busy < mshrs_) return at;
    at = next_end;
  }
}

// The first transfer that begins after `at`, which is put off until the one before it has ended.
std::vector<FastBus::Transfer>::iterator FastBus::first_after(Cycle& at) {
  const auto next =
      std::upper_bound(transfers_.begin(), transfers_.end(), at,
                       [](Cycle cycle, const Transfer& one) { return cycle < one.begin; });
  if (next != transfers_.begin()) at = std::max(at, (next - 1)->begin + transfer_cycles_);
  return next;
}

// Takes the bus for the first gap that is long enough; returns the end of it.
Cycle FastBus::carry_write(Cycle at) {
  auto next = first_after(at);
  for (; next != transfers_.end() && next->begin < at + transfer_cycles_; ++next) {
    at = next->begin + transfer_cycles_;
  }
  transfers_.insert(next, {at, true});
  return at + transfer_cycles_;
}

// Likewise, as if writes from then on were not there; these look for other gaps.
Cycle FastBus::carry_read(Cycle at) {
  auto next = first_after(at);
  auto place = next;
  for (; next != transfers_.end() && next->begin < at + transfer_cycles_; ++next) {
    if (next->is_write) continue;
    at = next->begin + transfer_cycles_;
    place = next + 1;
  }
  // From `place` to `next` are writes in the way of [at, at + transfer_cycles_), or before it.
  while (place != next && place->begin + transfer_cycles_ <= at) ++place;
  const auto in_the_way = static_cast<std::size_t>(next - place);
  place = transfers_.erase(place, next);
  transfers_.insert(place, {at, false});
  for (std::size_t i = 0; i < in_the_way; ++i) carry_write(at + transfer_cycles_);
  return at + transfer_cycles_;
}

void FastBus::forget() {
  constexpr std::size_t many = 64;
  if (transfers_.size() + misses_.size() < many) return;
  const auto live = std::find_if(transfers_.begin(), transfers_.end(), [this](const Transfer& one) {
    return one.begin + transfer_cycles_ > horizon_;
  });
  transfers_.erase(transfers_.begin(), live);
  std::erase_if(misses_, [this](const Miss& miss) { return miss.end <= horizon_; });
}

}  // namespace bcisim
