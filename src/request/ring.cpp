// The owner's side of a ring: room, segments, publishing.
#include "request/ring.hpp"

#include <algorithm>

namespace haul {

void Ring::begin(std::uint32_t ring_index, std::uint32_t table_cookie) noexcept {
  index = ring_index;
  cookie = table_cookie;
  tail_.store(first_seq, std::memory_order_relaxed);
  finished_below_.store(first_seq, std::memory_order_relaxed);
  reclaimed_ = first_seq;
  credit_ = slots;
  segment_free_ = segment_slots;
  completions.begin();
  owned.store(true, std::memory_order_relaxed);
}

void Ring::adopt() noexcept {
  completions.abandon();
  credit_ = slots;
  reclaimed_ = next_seq();
  segment_head_ = segment_reserved_ = 0;
  segment_free_ = segment_slots;
  for (std::uint32_t& used : segments_used_) used = 0;
  owned.store(true, std::memory_order_relaxed);
}

bool Ring::look_for_room() noexcept {
  const std::uint64_t next = next_seq();
  // Slot of seq is free when the tenancy before it has ended. Independent loads: their transfers
  // overlap.
  constexpr std::uint64_t at_once = slots / 4;
  std::uint64_t free = 0;
  while (free < at_once && State::seq(state_word(next + free).load(std::memory_order_acquire)) ==
                               next + free - slots) {
    ++free;
  }
  credit_ = free;
  return free != 0;
}

std::int64_t Ring::reserve_segments(std::uint32_t count) noexcept {
  const auto padding = [&] {
    const std::uint32_t to_end = segment_slots - segment_head_;
    return count <= to_end ? 0 : to_end;
  };
  if (segment_free_ < count + padding()) {
    for (const std::uint64_t finished = first_unfinished(next_seq()); reclaimed_ < finished;
         ++reclaimed_) {
      segment_free_ += segments_used_[reclaimed_ % slots];
      segments_used_[reclaimed_ % slots] = 0;
    }
    if (segment_free_ == segment_slots) segment_head_ = 0;  // all free: no need to wrap
    if (segment_free_ < count + padding()) return -1;
  }
  segment_head_before_ = segment_head_;
  segment_reserved_ = count + padding();
  const std::uint32_t first = count <= segment_slots - segment_head_ ? segment_head_ : 0;
  segment_free_ -= segment_reserved_;
  segment_head_ = (first + count) % segment_slots;
  return first;
}

void Ring::cancel_segments() noexcept {
  if (segment_reserved_ == 0) return;
  segment_head_ = segment_head_before_;
  segment_free_ += segment_reserved_;
  segment_reserved_ = 0;
}

void Ring::publish(Job& job, const Extras* extras) noexcept {
  const std::uint64_t seq = next_seq();
  const std::uint64_t at = seq % slots;
  // A slot's former tenant may not have been reclaimed yet: its segments go back now.
  if (reclaimed_ + slots <= seq) {
    segment_free_ += segments_used_[at];
    reclaimed_ = seq - slots + 1;
  }
  segments_used_[at] = segment_reserved_;
  segment_reserved_ = 0;
  job.seq = seq;
  job.extras = extras != nullptr;
  if (extras != nullptr) extras_[at] = *extras;
  --credit_;
  parameters_[at].publish(job);
  // After the publishing: who drains by the tail must not wait for what a signal handler
  // interrupted half-way.
  tail_.store(seq + 1, std::memory_order_release);
  // For a burst: the line of a coming request may have left the cache meanwhile.
  __builtin_prefetch(&parameters_[(seq + 4) % slots], 1);
}

std::uint64_t Ring::first_unfinished(std::uint64_t end) noexcept {
  const std::uint64_t known = finished_below_.load(std::memory_order_acquire);
  // Whatever is a whole ring older has ended, else its slot would not have been used again.
  std::uint64_t seq = std::max(known, end - std::min(end, slots));
  while (seq < end && State::seq(state_word(seq).load(std::memory_order_acquire)) >= seq) ++seq;
  // Release: who trusts the hint has not read the states itself.
  if (seq > known) {
    std::uint64_t expected = known;
    while (expected < seq &&
           !finished_below_.compare_exchange_weak(expected, seq, std::memory_order_acq_rel)) {
    }
  }
  return seq > end ? end : seq;
}

}  // namespace haul
