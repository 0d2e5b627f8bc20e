// Loads the file first, and measures only if there is none.
#include "tune/background.hpp"

#include <atomic>
#include <cerrno>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/thread/aide.hpp"
#include "gate/gate.hpp"
#include "mover/mover.hpp"
#include "request/rings.hpp"
#include "tune/calibration_file.hpp"
#include "tune/files.hpp"
#include "tune/measure.hpp"

namespace haul::tune {
namespace {

// Half a second of CPU in all: this is the thread's share; the mover's goes to spinning while it is
// waited for (200 ms at most), to some 75 runs with their pauses (130 ms) and to five wakings (50
// ms).
constexpr std::uint64_t background_cpu_ns = 100'000'000;
constexpr std::uint64_t background_pause_ns = 1'000'000;
constexpr unsigned background_patience_ms = 200;

constexpr std::uint64_t load_patience_ns = 1'000'000'000, store_patience_ns = 5'000'000'000,
                        asker_patience_ns = 1'000'000'000, look_patience_ns = 200'000'000;
constexpr std::uint64_t never = ~std::uint64_t{0};
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t look_again_ns = 600 * second_ns;   // at what is stored, and at the machine
constexpr std::uint64_t other_process_ns = 5 * second_ns;  // that is measuring now

// When to look again, on the monotonic clock.
constinit std::atomic<std::uint64_t> due_ns{0};
constinit std::atomic<bool> may_measure{false};  // there is a mover to measure with
// When the stored figures were measured; 0: there are none. Read whenever the distance has been
// measured.
constinit std::atomic<std::uint64_t> stored_at_s{0};
constinit std::atomic<double> stored_round_trip_ns{0};
constinit std::atomic<bool> waits_for_quiet{false};  // or for another process that measures
// Used by the thread at work; there is one at a time:
constinit bool told = false;       // of an unusable file
constinit unsigned disturbed = 0;  // measurements in a row
constinit Measured latest;         // those in use: loaded or measured; of time 0: none

void publish(const Measured& measured) noexcept {
  set_calibration(in_order(measured.figures));
  stored_round_trip_ns.store(measured.figures.round_trip_ns, std::memory_order_relaxed);
  stored_at_s.store(measured.quality.measured_at_s, std::memory_order_relaxed);
}

// For the thread at work.
void use(const Measured& measured) noexcept {
  latest = measured;
  publish(measured);
}

// Measures, and adds what the host has taken meanwhile, if that can be read.
Expected<Measured> measure_all(const Watch& watch) noexcept {
  const CpuTimes before = cpu_times_patiently(look_patience_ns);
  auto measured = measure(watch);
  if (!measured) return measured.error();
  Measured all = *measured;
  // What others have measured stays.
  if (const auto stored = load_patiently(load_patience_ns)) {
    all.near = stored->near;
    all.far = stored->far;
  }
  all.quality.stolen_share = stolen_share(before, cpu_times_patiently(look_patience_ns));
  log(LogLevel::debug,
      "measured: ran %.3f, stolen %.3f, spread %.3f; lines %.2f, %.2f, %.2f, remote %.2f ns, wake "
      "%.0f, kernel %.0f, submit %.0f ns",
      all.quality.ran_share, all.quality.stolen_share, all.quality.spread, all.figures.hot_line_ns,
      all.figures.l3_line_ns, all.figures.cold_line_ns, all.figures.remote_line_ns,
      all.figures.wake_ns, all.figures.kernel_call_ns, all.figures.submit_ns);
  return all;
}

std::uint64_t repeat_later(const char* why) noexcept {
  waits_for_quiet.store(true, std::memory_order_relaxed);
  const unsigned after_s = repeat_after_s(++disturbed);
  if (after_s == 0) {
    log(LogLevel::info, "The machine was not measured, since %s; this process gives up.", why);
    return never;
  }
  log(LogLevel::info, "The machine was not measured, since %s; again in %u s.", why, after_s);
  return now_ns() + after_s * second_ns;
}

// When to come back.
std::uint64_t measure_and_store() noexcept {
  const CalibrationLock lock;
  if (!lock.held()) {  // another process is measuring, or this one forks
    waits_for_quiet.store(true, std::memory_order_relaxed);
    return now_ns() + other_process_ns;  // its figures are there then
  }
  Watch watch;
  watch.cpu_limit_ns = background_cpu_ns;
  watch.pause_ns = background_pause_ns;
  watch.patience_ms = background_patience_ms;
  const auto measured = measure_all(watch);
  if (!measured) {
    log(LogLevel::info, "%s", measured.error().sentence);
    return repeat_later("that failed");
  }
  if (const char* why = distrust(*measured); why != nullptr) return repeat_later(why);
  disturbed = 0;
  waits_for_quiet.store(false, std::memory_order_relaxed);
  use(*measured);
  if (const Error failed = store_patiently(*measured, store_patience_ns); failed.code != Code::ok)
    log(LogLevel::info, "%s", failed.sentence);
  return now_ns() + look_again_ns;
}

void tell(const Error& error) noexcept {
  if (!told) log(LogLevel::info, "%s", error.sentence);
  told = true;
}

// Why the latest figures do not suffice, as a clause; nullptr: they do.
const char* why_measure() noexcept {
  if (latest.quality.measured_at_s == 0) return "there is none";
  Seen seen;
  seen.now_s = os::unix_time_s();
  seen.round_trip_ns = round_trip_now();
  seen.hot_line_ns = hot_line_now();
  return outdated(latest, seen);
}

// When to come back.
std::uint64_t work() noexcept {
  const auto stored = load_patiently(load_patience_ns);
  if (!stored) {
    if (stored.error().sys_errno != ENOENT) tell(stored.error());
    // The file system may answer yet.
    if (stored.error().code == Code::timed_out) return now_ns() + second_ns;
  } else if (stored->quality.measured_at_s >= latest.quality.measured_at_s) {
    use(*stored);
  }
  if (knob_number(Knob::tune_background) == 1) return never;  // 1: "off"
  const char* why = why_measure();
  if (why == nullptr) return now_ns() + look_again_ns;
  log(LogLevel::debug, "The calibration must be measured, since %s.", why);
  return may_measure.load(std::memory_order_relaxed) ? measure_and_store() : 0;
}

// Does the distance that the mover has just measured contradict what is stored?
bool distance_contradicts() noexcept {
  Measured stored;
  stored.figures.round_trip_ns = stored_round_trip_ns.load(std::memory_order_relaxed);
  stored.quality.measured_at_s = stored_at_s.load(std::memory_order_relaxed);
  if (stored.quality.measured_at_s == 0) return false;
  Seen seen;
  seen.now_s = os::unix_time_s();
  seen.round_trip_ns = round_trip_now();
  return outdated(stored, seen) != nullptr;
}

void tend(void* /*unused*/) noexcept {
  os::lowest_priority();
  os::widen_mask();  // the aide's maker may be pinned
  // Keeps off the mover's CPU, where it would be in the mover's way.
  if (const int cpu = mover_cpu(); cpu >= 0) os::avoid_cpu(static_cast<unsigned>(cpu));
  due_ns.store(work(), std::memory_order_relaxed);
  // It has submitted while it measured, so it owns a ring; an owned ring keeps the movers, and so
  // the process, alive.
  give_up_own_ring();
}

// Wakes the aide; does nothing if it is at work already.
void begin() noexcept {
  os::ask_aide(os::Aide::tune, tend, nullptr);
}

}  // namespace

void consider() noexcept {
  const std::uint64_t due = due_ns.load(std::memory_order_relaxed);
  if (due == never || files_stall()) return;
  // A disturbed measurement is not repeated sooner because it is contradicted as well.
  if (now_ns() < due &&
      (waits_for_quiet.load(std::memory_order_relaxed) || !distance_contradicts()))
    return;
  may_measure.store(true, std::memory_order_relaxed);
  begin();
}

void load_stored() noexcept {
  if (due_ns.load(std::memory_order_relaxed) == 0) begin();
}

Code calibrate_now(void (*progress)(int percent, void* context), void* context,
                   Error* error) noexcept {
  Watch watch;
  watch.progress = progress;
  watch.context = context;
  watch.runs = max_runs;
  const auto measured = measure_all(watch);
  if (!measured) {
    *error = measured.error();
    return error->code;
  }
  if (const char* why = distrust(*measured); why != nullptr) {
    *error = make_error(Code::again, 0,
                        "The machine was too busy to be measured (%s), so the previous figures "
                        "hold; run haul tune again when it is quiet.",
                        why);
    return error->code;
  }
  publish(*measured);  // the thread at work will find them in the file
  *error = store_patiently(*measured, store_patience_ns);
  return error->code;
}

Measured stored_or_default() noexcept {
  const auto stored = load_patiently(asker_patience_ns);
  if (!stored) return Measured{};
  Measured known = *stored;
  known.figures = in_order(known.figures);
  return known;
}

Error keep_rings(const HaulPrivateRing& near, const HaulPrivateRing& far) noexcept {
  const auto stored = load_patiently(asker_patience_ns);
  if (!stored) return stored.error();
  Measured with = *stored;
  with.near = near;
  with.far = far;
  return store_patiently(with, store_patience_ns);
}

}  // namespace haul::tune
