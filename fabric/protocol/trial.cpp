#include "fabric/protocol/trial.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace haul::fabric {

namespace {

constexpr unsigned growth = 4;  // of the interval, when all rivals have lost

template <class Gaps>
std::uint64_t median(Gaps gaps) noexcept {
  std::nth_element(gaps.begin(), gaps.begin() + gaps.size() / 2, gaps.end());
  return gaps[gaps.size() / 2];
}

}  // namespace

MessageWay Trial::choose(MessageWays ways) noexcept {
  if (!begun_) best_ = rival_ = ways.usual();
  begun_ = true;
  ways_ = ways;
  const MessageWay way = trying_ ? rival_ : best_;
  return chosen_ = ways.has(way) ? way : ways.usual();
}

void Trial::done(std::uint64_t now_ns, bool alone) noexcept {
  const std::uint64_t before_ns = last_ns_;
  last_ns_ = alone ? now_ns : 0;
  ++messages_;
  const bool counts = alone && before_ns != 0 && now_ns > before_ns && messages_ > settling &&
                      chosen_ == (trying_ ? rival_ : best_);
  if (counts) (trying_ ? trial_gaps_ : usual_gaps_)[gaps_++ % counted] = now_ns - before_ns;
  if (!trying_) {
    if (messages_ >= until_trial_ && gaps_ >= counted) begin();
  } else if (gaps_ == counted || is_hopeless()) {
    conclude();
  } else if (messages_ == 4 * (settling + counted)) {  // too many come together
    until_trial_ = interval_ = std::min(growth * interval_, longest_interval);
    go_on(false);
  }
}

bool Trial::is_hopeless() const noexcept {
  if (gaps_ < counted_at_least) return false;
  const auto least = *std::min_element(trial_gaps_.begin(), trial_gaps_.begin() + gaps_);
  return least * 2 > median(usual_gaps_) * 3;
}

// A rival that has won once is tried again; otherwise each has its turn.
void Trial::begin() noexcept {
  unsigned next = static_cast<unsigned>(rival_);
  for (unsigned i = 0; i < way_count && !won_once_; ++i) {
    next = (next + 1) % way_count;
    const auto way = static_cast<MessageWay>(next);
    if (way != best_ && ways_.has(way)) break;
  }
  rival_ = static_cast<MessageWay>(next);
  go_on(rival_ != best_ && ways_.has(rival_));
}

void Trial::conclude() noexcept {
  constexpr unsigned soon = settling + counted;
  const bool won = gaps_ == counted && median(trial_gaps_) * 16 < median(usual_gaps_) * 15;
  until_trial_ = soon;
  if (won && !won_once_) {  // that may be luck: the second trial in a row decides
    won_once_ = true;
  } else if (won) {
    won_once_ = false;
    lost_ = 0;
    until_trial_ = interval_ = first_interval_;
    std::swap(best_, rival_);
  } else {
    won_once_ = false;
    if (++lost_ + 1 >= ways_.count()) {
      lost_ = 0;
      until_trial_ = interval_ = std::min(growth * interval_, longest_interval);
    }
  }
  go_on(false);
}

void Trial::go_on(bool trying) noexcept {
  trying_ = trying;
  messages_ = gaps_ = 0;
}

Trials::Trials() noexcept {
  constexpr unsigned usual_to_log2 = 20, least_interval = Trial::settling + Trial::counted;
  for (unsigned log2 = usual_to_log2 + 1; log2 <= most_log2; ++log2)
    trials_[log2 - least_log2] =
        Trial(std::max(Trial::usual_interval >> (log2 - usual_to_log2), least_interval));
}

Trial* Trials::of(std::size_t bytes) noexcept {
  const auto log2 = static_cast<unsigned>(std::bit_width(bytes >> least_log2));
  return log2 == 0 ? nullptr : &trials_[std::min(log2 - 1, most_log2 - least_log2)];
}

}  // namespace haul::fabric
