#include "fabric/protocol/trial.hpp"

#include <algorithm>
#include <bit>

namespace haul::fabric {

namespace {

constexpr unsigned growth = 4;  // of the interval, with each trial that was lost

Trial::Way other(Trial::Way way) noexcept {
  return way == Trial::Way::pieces ? Trial::Way::direct : Trial::Way::pieces;
}

template <class Gaps>
std::uint64_t median(Gaps gaps) noexcept {
  std::nth_element(gaps.begin(), gaps.begin() + gaps.size() / 2, gaps.end());
  return gaps[gaps.size() / 2];
}

}  // namespace

Trial::Way Trial::choose(Way usual) noexcept {
  if (!begun_) best_ = usual;
  begun_ = true;
  return trying_ ? other(best_) : best_;
}

void Trial::done(std::uint64_t now_ns, bool alone) noexcept {
  const std::uint64_t before_ns = last_ns_;
  last_ns_ = alone ? now_ns : 0;
  ++messages_;
  const bool counts = alone && before_ns != 0 && now_ns > before_ns && messages_ > settling;
  if (counts) (trying_ ? trial_gaps_ : usual_gaps_)[gaps_++ % counted] = now_ns - before_ns;
  if (!trying_) {
    if (messages_ >= interval_ && gaps_ >= counted) go_on(true);
  } else if (gaps_ == counted) {
    conclude();
  } else if (messages_ == 4 * (settling + counted)) {  // too many come together
    interval_ = std::min(growth * interval_, longest_interval);
    go_on(false);
  }
}

void Trial::conclude() noexcept {
  const bool won = median(trial_gaps_) * 16 < median(usual_gaps_) * 15;
  if (!won) {
    won_once_ = false;
    interval_ = std::clamp(growth * interval_, first_interval_, longest_interval);
  } else if (!won_once_) {  // that may be luck: the second trial in a row decides
    won_once_ = true;
    interval_ = settling + counted;
  } else {
    won_once_ = false;
    interval_ = first_interval_;
    best_ = other(best_);
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
