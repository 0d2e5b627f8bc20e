// Each figure is a median of short runs: the caller's copies hot, from the shared cache and from
// memory; the price of reading what the mover wrote, which is the difference from reading what the
// same thread wrote; and the kernel's copies of what the mover wrote.
#include "tune/measure.hpp"

#include <algorithm>

#include "base/knobs.hpp"
#include "base/machine/clock.hpp"
#include "base/machine/cpu.hpp"
#include "base/os/os.hpp"
#include "copy/cache_lines.hpp"
#include "copy/copy.hpp"
#include "gate/gate.hpp"
#include "mover/short_road.hpp"
#include "mover/submit.hpp"

namespace haul::tune {
namespace {

constexpr std::size_t buffer_bytes = 8u << 20;
constexpr std::size_t hot_bytes = 64u << 10;
constexpr std::size_t l3_bytes = 2u << 20;
constexpr std::size_t cold_bytes = 1u << 20;
constexpr std::size_t remote_bytes = 256u << 10;
constexpr std::size_t kernel_bytes = 64u << 10;
// What the mover has not done within this time it may never do.
constexpr std::uint64_t stuck_ns = 3'000'000'000;
// How long to wait for it without sleeping.
constexpr std::uint64_t spin_ns = 100'000'000;

// Two buffers and the measurements made with them.
class Bench {
 public:
  explicit Bench(const Watch& watch) noexcept : watch_(watch), cpu_began_ns_(thread_cpu_ns()) {}
  ~Bench() {
    if (stuck_) {
      // The mover may yet do what it was asked to with these buffers, so they stay mapped on
      // purpose; only their pages are dropped.
      if (src_ != nullptr) os::drop_pages(src_, buffer_bytes);
      if (dst_ != nullptr) os::drop_pages(dst_, buffer_bytes);
      return;
    }
    if (src_ != nullptr) os::unmap(src_, buffer_bytes);
    if (dst_ != nullptr) os::unmap(dst_, buffer_bytes);
    if (small_pages_ != nullptr) os::unmap(small_pages_, kernel_bytes);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  bool prepare() noexcept {
    src_ = static_cast<std::byte*>(os::map_anonymous(buffer_bytes));
    dst_ = static_cast<std::byte*>(os::map_anonymous(buffer_bytes));
    small_pages_ = static_cast<std::byte*>(os::map_anonymous(kernel_bytes));
    if (src_ == nullptr || dst_ == nullptr || small_pages_ == nullptr) return false;
    os::keep_pages_small(small_pages_, kernel_bytes);
    copy::fill_bytes(src_, buffer_bytes, 0x5a, 1, Affinity::cacheable);
    copy::fill_bytes(dst_, buffer_bytes, 0, 1, Affinity::cacheable);
    return true;
  }

  // Did the mover go away? What was timed is then worthless.
  bool lost() const noexcept { return lost_; }

  // Has the mover left a request undone? It is then asked nothing more.
  bool stuck() const noexcept { return stuck_; }

  // Is it clear already that this thread gets no CPU? It is then not worth going on.
  bool starved() const noexcept {
    constexpr std::uint64_t look_ns = 100'000'000;
    return wanted_ns_ >= look_ns && ran_ns_ < wanted_ns_ / 2;
  }

  bool out_of_time() const noexcept {
    return watch_.cpu_limit_ns != 0 && thread_cpu_ns() - cpu_began_ns_ > watch_.cpu_limit_ns;
  }

  Quality quality() const noexcept {
    Quality quality;
    quality.measured_at_s = os::unix_time_s();
    quality.spread = line_spread_;
    if (wanted_ns_ != 0) {
      const double share = static_cast<double>(ran_ns_) / static_cast<double>(wanted_ns_);
      quality.ran_share = std::min(share, 1.0);
    }
    return quality;
  }

  // ns a line of the caller's own copy. flush: both sides are put out of the caches first.
  double copy_line_ns(std::size_t bytes, bool flush) noexcept {
    return median(&line_spread_, [&] {
      if (flush) {
        copy::flush_lines(src_, src_ + bytes);
        copy::flush_lines(dst_, dst_ + bytes);
        os::thread_id();  // a system call, so that the flushes are over
      }
      const std::uint64_t begin = fenced_ticks();
      copy::move_bytes(dst_, src_, bytes, Affinity::cacheable, Affinity::cacheable);
      return lines_ns(fenced_ticks() - begin, bytes);
    });
  }

  // ns a line to read the destination after the mover (or this thread) wrote it.
  double read_line_ns(bool by_mover) noexcept {
    return median(nullptr, [&] {
      if (by_mover) {
        Ticket ticket;
        if (!publish(dst_, remote_bytes, &ticket)) return 0.0;
        await(ticket);
      } else {
        copy::move_bytes(dst_, src_, remote_bytes, Affinity::cacheable, Affinity::cacheable);
      }
      const std::uint64_t begin = fenced_ticks();
      std::uint64_t sum = 0;
      for (std::size_t at = 0; at < remote_bytes; at += 64) {
        sum += *reinterpret_cast<const volatile std::uint64_t*>(dst_ + at);
      }
      sink_ = sum;
      return lines_ns(fenced_ticks() - begin, remote_bytes);
    });
  }

  // ns for the kernel to copy this much, at most kernel_bytes, of what the mover wrote into small
  // pages; 0 if it refuses.
  double kernel_read_ns(std::size_t bytes) noexcept {
    return median(nullptr, [&] {
      Ticket ticket;
      if (!publish(small_pages_, bytes, &ticket)) return 0.0;
      await(ticket);
      const iovec local{dst_, bytes}, remote{small_pages_, bytes};
      const std::uint64_t begin = fenced_ticks();
      const ssize_t got = os::read_process(os::thread_id(), &local, 1, &remote, 1);
      const std::uint64_t end = fenced_ticks();
      return got == static_cast<ssize_t>(bytes) ? ns(end - begin) : 0.0;
    });
  }

  // ns to publish a request while the mover is awake.
  double submit_ns() noexcept {
    constexpr unsigned in_a_row = 16;
    return median(nullptr, [&] {
      Ticket tickets[in_a_row];
      const std::uint64_t begin = fenced_ticks();
      for (Ticket& ticket : tickets) publish(dst_, 64, &ticket);
      const std::uint64_t end = fenced_ticks();
      for (const Ticket& ticket : tickets) await(ticket);
      return ns(end - begin) / in_a_row;
    });
  }

  // ns that a submit costs in addition when it must wake the mover. 0 if the mover would not sleep.
  double wake_ns(double submit) noexcept {
    constexpr unsigned wakes = 5;
    constexpr std::uint64_t step_ns = 2'000'000;
    const std::uint64_t patience_ns = knob_number(Knob::mover_spin_us) * 1000 + 20'000'000;
    double figures[wakes];
    for (double& figure : figures) {
      std::uint64_t slept_ns = 0;
      while (gate.state.load(std::memory_order_relaxed) != plan::MoverState::asleep) {
        if (slept_ns > patience_ns || starved() || stuck_) return 0;
        os::sleep_ns(step_ns);
        slept_ns += step_ns;
      }
      Ticket ticket;
      const std::uint64_t begin = fenced_ticks();
      publish(dst_, 64, &ticket);
      figure = ns(fenced_ticks() - begin) - submit;
      await(ticket);
    }
    std::nth_element(figures, figures + wakes / 2, figures + wakes);
    return std::max(figures[wakes / 2], 0.0);
  }

 private:
  bool publish(std::byte* dst, std::size_t bytes, Ticket* ticket) noexcept {
    const bool taken =
        publish_plain(Operation::copy, address(dst), address(src_), bytes, false, ticket);
    lost_ |= !taken;
    return taken;
  }

  static std::uintptr_t address(const std::byte* buffer) noexcept {
    return reinterpret_cast<std::uintptr_t>(buffer);
  }

  static double ns(std::uint64_t elapsed_ticks) noexcept {
    return static_cast<double>(elapsed_ticks) / ticks_per_ns();
  }
  static double lines_ns(std::uint64_t elapsed_ticks, std::size_t bytes) noexcept {
    return ns(elapsed_ticks) / (static_cast<double>(bytes) / 64);
  }

  // Waits without helping, since the mover must write all of it.
  void await(const Ticket& ticket) noexcept {
    if (ticket.cookie() == 0 || stuck_) return;
    const Ring& ring = ring_table.ring(ticket.ring());
    const std::uint64_t begin_ns = now_ns();
    std::uint64_t waited_ns = 0;
    for (unsigned turn = 1;
         State::seq(ring.state_word(ticket.tenancy).load(std::memory_order_acquire)) <
         ticket.tenancy;
         ++turn) {
      if (gate.closed.load(std::memory_order_relaxed)) return;
      if (waited_ns <= spin_ns && turn % 4096 != 0) {
        cpu_relax();
        continue;
      }
      if (waited_ns > spin_ns) {
        os::sleep_ns(1'000'000);
      } else {
        os::yield();
      }
      waited_ns = now_ns() - begin_ns;
      stuck_ = waited_ns > stuck_ns;
      if (stuck_) return;
    }
  }

  // Sleeps for the pause between two runs. A thread that wakes much too late has waited for a CPU.
  void rest() noexcept {
    constexpr std::uint64_t ordinary_ns = 500'000;
    if (watch_.pause_ns == 0) return;
    const std::uint64_t begin = now_ns();
    os::sleep_ns(watch_.pause_ns);
    const std::uint64_t slept_ns = now_ns() - begin;
    if (slept_ns > watch_.pause_ns + ordinary_ns)
      wanted_ns_ += slept_ns - watch_.pause_ns - ordinary_ns;
  }

  template <class Run>
  double median(double* spread, Run run) noexcept {
    double figures[max_runs];
    unsigned count = 0;
    for (; count < watch_.runs && !out_of_time() && !starved() && !stuck_; ++count) {
      Error ignored;
      wake_mover(&ignored);
      rest();
      const std::uint64_t begin = now_ns(), cpu_begin = thread_cpu_ns();
      figures[count] = run();
      ran_ns_ += thread_cpu_ns() - cpu_begin;
      wanted_ns_ += now_ns() - begin;
    }
    if (count == 0) return 0;
    std::sort(figures, figures + count);
    const double middle = figures[count / 2];
    if (spread != nullptr && middle > 0)
      *spread = std::max(*spread, (figures[count * 3 / 4] - figures[count / 4]) / middle);
    return middle;
  }

  const Watch& watch_;
  std::uint64_t cpu_began_ns_;
  std::byte* src_ = nullptr;
  std::byte* dst_ = nullptr;
  std::byte* small_pages_ = nullptr;
  volatile std::uint64_t sink_ = 0;
  bool lost_ = false, stuck_ = false;
  std::uint64_t wanted_ns_ = 0, ran_ns_ = 0;  // of the runs
  double line_spread_ = 0;
};

void tell(const Watch& watch, int percent) noexcept {
  if (watch.progress != nullptr) watch.progress(percent, watch.context);
}

}  // namespace

Expected<Measured> measure(const Watch& watch) noexcept {
  Error error;
  if (ring_for_submit(&error) == nullptr) return error;
  const std::uint64_t until_ns = now_ns() + std::uint64_t{watch.patience_ms} * 1'000'000;
  const auto is = [](plan::MoverState state) {
    return gate.state.load(std::memory_order_relaxed) == state;
  };
  // No mover is made while the node's service is looked for, which takes a moment.
  Code woken = wake_mover(&error);
  while (woken == Code::again && is(plan::MoverState::none) && now_ns() < until_ns) {
    os::sleep_ns(1'000'000);
    woken = wake_mover(&error);
  }
  if (woken != Code::ok) return error;
  // A mover that finds the cores busy measures their distance at the next quiet moment.
  const auto awake = [is] { return is(plan::MoverState::awake); };
  while (!awake() || round_trip_now() <= 0) {
    const bool late = now_ns() >= until_ns;
    if (late && awake()) {
      return make_error(
          Code::again, 0,
          "The two cores were too busy to measure the distance between them; try again "
          "on a quieter machine.");
    }
    if (late) {
      return make_error(Code::again, 0,
                        "The mover did not become awake, so nothing was measured; another process "
                        "may lease the core: try again later.");
    }
    wake_mover(&error);
    os::sleep_ns(1'000'000);
  }
  Bench bench(watch);
  if (!bench.prepare()) {
    return make_error(Code::no_memory, 0,
                      "There is no memory to measure with (16 MiB), so nothing was measured; free "
                      "some and try again.");
  }
  plan::Calibration figures;
  const double distance = round_trip_now();
  tell(watch, 0);
  figures.hot_line_ns = bench.copy_line_ns(hot_bytes, false);
  tell(watch, 15);
  figures.l3_line_ns = bench.copy_line_ns(l3_bytes, false);
  tell(watch, 35);
  figures.cold_line_ns = bench.copy_line_ns(cold_bytes, true);
  tell(watch, 60);
  const double own = bench.read_line_ns(false);
  const double remote = bench.read_line_ns(true);
  tell(watch, 85);
  figures.remote_line_ns = std::max(remote - own, 0.05);
  if (const double call = bench.kernel_read_ns(64); call > 0) {
    const double whole = bench.kernel_read_ns(kernel_bytes);
    figures.kernel_call_ns = call;
    figures.kernel_line_ns = std::max(whole - call, 1.0) / (static_cast<double>(kernel_bytes) / 64);
  }
  figures.submit_ns = bench.submit_ns();
  if (const double wake = bench.wake_ns(figures.submit_ns); wake > 0) figures.wake_ns = wake;
  figures.round_trip_ns = distance;
  if (bench.stuck()) {
    return make_error(Code::again, 0,
                      "The mover has done nothing for 3 s, so nothing was measured: it waits for "
                      "the memory of another request, or for a CPU; try again when that is done.");
  }
  if (bench.lost() && !bench.starved()) {
    return make_error(Code::again, 0,
                      "The mover went away while it was being measured; run haul tune again.");
  }
  figures.measured = true;
  tell(watch, 100);
  if (bench.out_of_time() && !bench.starved()) {
    return make_error(Code::timed_out, 0,
                      "Measuring took more CPU time than it may; the safe figures hold; run haul "
                      "tune to measure without that limit.");
  }
  Measured measured;
  measured.figures = figures;
  measured.quality = bench.quality();
  return measured;
}

double hot_line_now() noexcept {
  constexpr unsigned runs = 15;
  auto* buffers = static_cast<std::byte*>(os::map_anonymous(2 * hot_bytes));
  if (buffers == nullptr) return 0;
  copy::fill_bytes(buffers, 2 * hot_bytes, 0x5a, 1, Affinity::cacheable);
  std::uint64_t times[runs];
  for (std::uint64_t& time : times) {
    const std::uint64_t begin = fenced_ticks();
    copy::move_bytes(buffers, buffers + hot_bytes, hot_bytes, Affinity::cacheable,
                     Affinity::cacheable);
    time = fenced_ticks() - begin;
  }
  os::unmap(buffers, 2 * hot_bytes);
  std::uint64_t* const median = times + runs / 2;
  std::nth_element(times, median, times + runs);
  constexpr std::size_t lines = hot_bytes / 64;
  return static_cast<double>(*median) / ticks_per_ns() / static_cast<double>(lines);
}

}  // namespace haul::tune
