#include "cli/mpi/rings/ring_race.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "bench/kit/stats.hpp"

namespace haul::cli {
namespace {

constexpr std::size_t kib = 1024;
constexpr unsigned repeats = 9;  // of each exchange, for a median
// How much faster a way must be to be taken: less is noise.
constexpr double clearly = 0.95;
// A race that takes so much longer than it should shares its CPUs with others.
constexpr std::uint64_t limit_ns = 5'000'000'000;

// A question to the machine: which of these ways? Each changes the ring as it is so far.
struct RingQuestion {
  std::vector<std::function<void(HaulPrivateRing&)>> answers;
  std::vector<std::size_t> sizes;  // of messages that it makes a difference to
};

template <class Value>
RingQuestion question(Value HaulPrivateRing::*member, std::initializer_list<Value> values,
                      std::vector<std::size_t> sizes) {
  RingQuestion asked;
  asked.sizes = std::move(sizes);
  for (const Value value : values)
    asked.answers.emplace_back([member, value](HaulPrivateRing& ring) { ring.*member = value; });
  return asked;
}

// In this order: each is asked with the answers to those before.
std::vector<RingQuestion> questions() {
  using Ring = HaulPrivateRing;
  return {
      question<std::size_t>(&Ring::cell_from_bytes, {0, 512, 2 * kib},
                            {512, 1 * kib, 2 * kib, 4 * kib, 16 * kib, 64 * kib}),
      question(&Ring::copies_out,
               {HaulPrivateCopy::strings, HaulPrivateCopy::vectors, HaulPrivateCopy::prefetching},
               {2 * kib, 8 * kib, 64 * kib}),
      question(&Ring::copies_in,
               {HaulPrivateCopy::strings, HaulPrivateCopy::vectors, HaulPrivateCopy::prefetching},
               {2 * kib, 8 * kib, 64 * kib}),
      question<std::size_t>(&Ring::part_bytes, {2 * kib, 4 * kib, 8 * kib, 16 * kib},
                            {4 * kib, 16 * kib, 64 * kib}),
      question(&Ring::owns_ahead, {true, false}, {256, 1 * kib, 4 * kib, 16 * kib, 64 * kib}),
      question(&Ring::demotes, {true, false}, {64, 256, 1 * kib}),
      question<std::size_t>(&Ring::eager_bytes, {16 * kib, 32 * kib, 64 * kib},
                            {32 * kib, 64 * kib}),
      question<std::size_t>(&Ring::piece_bytes, {8 * kib, 16 * kib, 32 * kib},
                            {128 * kib, 256 * kib, 1024 * kib}),
  };
}

RingRun run_of(std::size_t bytes, bool off_cache) {
  constexpr std::size_t worth_bytes = 200 * kib;
  return {bytes, static_cast<unsigned>(std::clamp<std::size_t>(worth_bytes / bytes, 2, 48)),
          off_cache};
}

class RingRace {
 public:
  explicit RingRace(RingPair& pair) : pair_(pair), until_ns_(now_ns() + limit_ns) {}

  bool over() const { return failed_; }

  // How long this exchange takes each of the rings, in ns; they take turns, each goes first as
  // often.
  std::vector<double> times(const std::vector<HaulPrivateRing>& rings, const RingRun& run) {
    std::vector<std::vector<double>> all(rings.size());
    for (unsigned repeat = 0; repeat < repeats && !failed_; ++repeat) {
      for (std::size_t turn = 0; turn < rings.size() && !failed_; ++turn) {
        const std::size_t i = (turn + repeat) % rings.size();
        pair_.write_as(rings[i]);
        const double ns = pair_.exchange(run);
        failed_ = !(ns > 0) || now_ns() > until_ns_;
        all[i].push_back(ns);
      }
    }
    std::vector<double> medians;
    medians.reserve(rings.size());
    for (auto& figures : all) medians.push_back(failed_ ? 1 : bench::median(figures));
    return medians;
  }

  // The best answer, given by changing `ring`.
  void ask(const RingQuestion& asked, HaulPrivateRing& ring) {
    std::vector<HaulPrivateRing> rings = {ring};
    for (const auto& answer : asked.answers) {
      rings.push_back(ring);
      answer(rings.back());
    }
    std::vector<double> logs(rings.size());
    for (const std::size_t bytes : asked.sizes) {
      for (const bool off_cache : {false, true}) {
        const std::vector<double> taken = times(rings, run_of(bytes, off_cache));
        for (std::size_t i = 0; i < rings.size(); ++i) logs[i] += std::log(taken[i] / taken[0]);
      }
    }
    const double runs = 2.0 * static_cast<double>(asked.sizes.size());
    const auto best = std::min_element(logs.begin(), logs.end());
    if (failed_ || std::exp(*best / runs) > clearly) return;
    ring = rings[static_cast<std::size_t>(best - logs.begin())];
  }

 private:
  RingPair& pair_;
  const std::uint64_t until_ns_;
  bool failed_ = false;
};

}  // namespace

std::optional<HaulPrivateRing> race_rings(RingPair& pair, const RaceProgress& progress) {
  constexpr double quiet_share = 0.9;
  RingRace race(pair);
  HaulPrivateRing ring;
  // (The first messages find nothing in any cache.)
  for (const std::size_t bytes : {64 * kib, 1024 * kib}) race.times({ring}, run_of(bytes, true));
  const std::vector<RingQuestion> all = questions();
  for (std::size_t i = 0; i < all.size() && !race.over(); ++i) {
    race.ask(all[i], ring);
    progress(static_cast<double>(i + 1) / static_cast<double>(all.size() + 1));
  }
  for (unsigned size = 0; size < HaulPrivateRing::size_count; ++size)
    ring.message_ns[size] = race.times({ring}, run_of(HaulPrivateRing::bytes_of(size), false))[0];
  progress(1);
  if (race.over() || pair.ran_share() < quiet_share) return std::nullopt;
  ring.measured_at_s = os::unix_time_s();
  return ring;
}

}  // namespace haul::cli
