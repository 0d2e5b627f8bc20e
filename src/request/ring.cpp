#include "request/ring.hpp"

#include <algorithm>

#include "completion/ledger.hpp"

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

Ring::Unfinished Ring::unfinished() noexcept {
  Unfinished found;
  const std::uint64_t end = next_seq();
  for (std::uint64_t seq = first_unfinished(end); seq < end; ++seq) {
    if (!ended(seq)) found.bits[seq % slots / 64] |= std::uint64_t{1} << seq % 64;
  }
  return found;
}

void Ring::begin_ended(std::uint32_t ring_index, std::uint32_t table_cookie, std::uint64_t tail,
                       const Unfinished& unfinished) noexcept {
  begin_at_rest(ring_index, table_cookie, tail);
  for (std::uint64_t seq = std::max(first_seq, tail - slots); seq < tail; ++seq) {
    if ((unfinished.bits[seq % slots / 64] >> seq % 64 & 1) != 0)
      ledger_record(index, seq, Code::io, 0);
  }
  fill_in_ended();
  emptied.store(false, std::memory_order_relaxed);
  adopt();
  owned.store(false, std::memory_order_relaxed);
}

void Ring::begin_at_rest(std::uint32_t ring_index, std::uint32_t table_cookie,
                         std::uint64_t tail) noexcept {
  begin(ring_index, table_cookie);
  tail_.store(tail, std::memory_order_relaxed);
  finished_below_.store(tail, std::memory_order_relaxed);
  owned.store(false, std::memory_order_relaxed);
  emptied.store(true, std::memory_order_relaxed);
}

void Ring::fill_in_ended() noexcept {
  const std::uint64_t tail = next_seq();
  for (std::uint64_t seq = std::max(first_seq, tail - slots); seq < tail; ++seq) {
    const std::uint64_t at = seq % slots;
    // All chunks are claimed, so that nobody claims more, and the state says ended; only then is it
    // published, for movers, whose cursors walk over it.
    claims_[at].claim.store((seq / slots) << 32 | ~std::uint32_t{0}, std::memory_order_release);
    Code code = Code::ok;
    if (!ledger_empty() || ledger_forgot(index, seq)) {
      Failure failure;
      const bool found = ledger_find(index, seq, &failure);
      if (!found && ledger_forgot(index, seq)) failure.code = Code::stale;
      code = failure.code;
    }
    states_[at].word.store(State::make(seq, code), std::memory_order_release);
    parameters_[at].seq.store(seq, std::memory_order_release);
  }
}

void Ring::forget_waiters() noexcept {
  for (Claims& claims : claims_) claims.sleepers.store(0, std::memory_order_relaxed);
  helpers.store(0, std::memory_order_relaxed);
  recovering.store(0, std::memory_order_relaxed);
}

void Ring::adopt() noexcept {
  import_failures();  // of slots that are about to be reused unseen
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
  // A seq's slot is free when the tenancy before it has ended. The loads are independent, so their
  // transfers overlap.
  constexpr std::uint64_t at_once = slots / 4;
  std::uint64_t free = 0;
  for (; free < at_once; ++free) {
    const std::uint64_t word = state_word(next + free).load(std::memory_order_acquire);
    if (State::seq(word) != next + free - slots) break;
    // The slot is about to be used again: what the service left there must not be lost.
    if (State::code(word) != Code::ok) import_failure(next + free - slots, State::code(word));
  }
  credit_ = free;
  return free != 0;
}

void Ring::import_failure(std::uint64_t seq, Code code) noexcept {
  const Claims& claims = claims_[seq % slots];
  const std::uint64_t left = claims.failure.load(std::memory_order_acquire);
  if (left >> 32 != static_cast<std::uint32_t>(seq / slots)) return;
  const auto own = static_cast<Code>(-static_cast<std::int32_t>(left & 0xff));
  ledger_record(index, seq, own == Code::ok ? code : own,
                claims.failure_good.load(std::memory_order_relaxed));
}

void Ring::import_failures() noexcept {
  const std::uint64_t end = next_seq();
  for (std::uint64_t seq = std::max(first_seq, end - slots); seq < end; ++seq) {
    const std::uint64_t word = state_word(seq).load(std::memory_order_acquire);
    if (State::seq(word) == seq && State::code(word) != Code::ok)
      import_failure(seq, State::code(word));
  }
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
  // A slot's former tenancy may not have been reclaimed yet: its segments are given back now.
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
  // After the publishing: a thread that drains by the tail must not wait for a request that a
  // signal handler has interrupted halfway.
  tail_.store(seq + 1, std::memory_order_release);
  // For a burst: the line of a request to come may have left the cache meanwhile.
  __builtin_prefetch(&parameters_[(seq + 4) % slots], 1);
}

std::uint64_t Ring::first_unfinished(std::uint64_t end) noexcept {
  const std::uint64_t known = finished_below_.load(std::memory_order_acquire);
  // Every request a whole ring older has ended, else its slot would not have been used again.
  std::uint64_t seq = std::max(known, end - std::min(end, slots));
  while (seq < end && State::seq(state_word(seq).load(std::memory_order_acquire)) >= seq) ++seq;
  // Release: a thread that trusts the hint has not read the states itself.
  if (seq > known) {
    std::uint64_t expected = known;
    while (expected < seq &&
           !finished_below_.compare_exchange_weak(expected, seq, std::memory_order_acq_rel)) {
    }
  }
  return seq > end ? end : seq;
}

}  // namespace haul
