// The exchange of a line between two cores, a few hundred times.
//
// The helper answers on the submitter's CPU: turn by turn it stores the turn in `answered`
// (release) and waits for the mover to store the same number in `served` (acquire). The mover polls
// until `answered` shows that the helper runs, then plays all turns and takes the median of their
// times. Each side gives up at its time limit, and the mover ends the game by storing a number past
// the last turn, so that neither waits for the other for long. `gone` is the helper's last store:
// the meter may be used again from then on.
#include "mover/cores/round_trip.hpp"

#include <algorithm>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/sync/backoff.hpp"
#include "base/thread/aide.hpp"

namespace haul {
namespace {

constexpr unsigned exchanges = 201;
constexpr std::uint64_t limit_ns = 200'000;  // of a helper without answer, and of the exchange
constexpr unsigned turns_between_clocks = 256;

// Spins until the word reaches `value`; false when the time is up.
bool await(const std::atomic<std::uint32_t>& word, std::uint32_t value,
           std::uint64_t until_ns) noexcept {
  for (unsigned turn = 1; word.load(std::memory_order_acquire) < value; ++turn) {
    if (turn % turns_between_clocks == 0 && now_ns() > until_ns) return false;
  }
  return true;
}

}  // namespace

void RoundTripMeter::answer(void* argument) noexcept {
  RoundTripMeter& meter = *static_cast<RoundTripMeter*>(argument);
  const bool placed = meter.other_cpu_ >= 0 && meter.other_cpu_ != meter.own_cpu_ &&
                      os::pin_thread(static_cast<unsigned>(meter.other_cpu_));
  const std::uint64_t until_ns = now_ns() + limit_ns;
  for (std::uint32_t turn = 1; placed && turn <= exchanges + 1; ++turn) {
    meter.answered_.store(turn, std::memory_order_release);
    if (!await(meter.served_, turn, until_ns)) break;
  }
  meter.gone_.store(true, std::memory_order_release);
}

void RoundTripMeter::start(int own_cpu, int other) noexcept {
  if (started_) return;
  own_cpu_ = own_cpu;
  other_cpu_ = other;
  served_.store(0, std::memory_order_relaxed);
  answered_.store(0, std::memory_order_relaxed);
  gone_.store(false, std::memory_order_relaxed);
  played_ = false;
  started_ = os::ask_aide(os::Aide::distance, answer, this) == 0;
}

double RoundTripMeter::poll() noexcept {
  if (!started_) return 0;
  if (gone_.load(std::memory_order_acquire)) {
    finish();
    return 0;
  }
  if (played_ || answered_.load(std::memory_order_acquire) == 0) return 0;
  played_ = true;
  const double measured = exchange();
  served_.store(exchanges + 1, std::memory_order_release);  // ends the helper's wait
  return measured;
}

double RoundTripMeter::exchange() noexcept {
  const std::uint64_t until_ns = now_ns() + limit_ns;
  std::uint64_t times[exchanges];
  for (std::uint32_t turn = 1; turn <= exchanges; ++turn) {
    const std::uint64_t begin = ticks();
    served_.store(turn, std::memory_order_release);
    if (!await(answered_, turn + 1, until_ns)) return 0;
    times[turn - 1] = ticks() - begin;
  }
  served_.store(exchanges + 1, std::memory_order_release);
  std::nth_element(times, times + exchanges / 2, times + exchanges);
  const std::uint64_t median_ticks = times[exchanges / 2];
  return static_cast<double>(median_ticks) / ticks_per_ns();
}

void RoundTripMeter::finish() noexcept {
  if (!started_) return;
  served_.store(exchanges + 1, std::memory_order_release);
  for (Backoff backoff; !gone_.load(std::memory_order_acquire);) backoff.pause();
  started_ = false;
}

}  // namespace haul
