// threads: one to eight threads, each with a window of copies in flight, against as many threads
// that call memcpy.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <exception>
#include <memory>
#include <thread>

#include "base/os/os.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr unsigned most_threads = 8;
constexpr std::size_t window = 4, rounds = 8;

enum class CopyingTask { haul, memcpy, stop };

// Threads that wait for a round, copy, and check. The first failure is kept.
class CopyingThreads {
 public:
  CopyingThreads(unsigned count, std::size_t bytes)
      : bytes_(bytes), gate_(static_cast<std::ptrdiff_t>(count) + 1) {
    for (unsigned i = 0; i < count; ++i) buffers_.push_back(std::make_unique<Pair>(bytes));
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this, i] { work(*buffers_[i], i); });
    }
  }
  ~CopyingThreads() {
    way_ = CopyingTask::stop;
    gate_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  CopyingThreads(const CopyingThreads&) = delete;
  CopyingThreads& operator=(const CopyingThreads&) = delete;

  // Nanoseconds from the first thread's start to the last thread's end. Each thread reads the clock
  // itself: with more threads than CPUs no other thread would run at the right moment.
  double round(CopyingTask way) {
    way_ = way;
    ++seed_;
    gate_.arrive_and_wait();  // contents are rewritten
    gate_.arrive_and_wait();  // all start
    gate_.arrive_and_wait();  // all are done
    gate_.arrive_and_wait();  // all have checked
    if (failure_) std::rethrow_exception(failure_);
    std::uint64_t begin_ns = ~std::uint64_t{0}, end_ns = 0;
    for (const auto& pair : buffers_) {
      begin_ns = std::min(begin_ns, pair->begin_ns);
      end_ns = std::max(end_ns, pair->end_ns);
    }
    return static_cast<double>(end_ns - begin_ns);
  }

 private:
  struct Pair {
    Buffer src, dst;
    std::uint64_t begin_ns = 0, end_ns = 0;
    explicit Pair(std::size_t bytes) : src(bytes * window), dst(bytes * window, line_bytes) {}
  };

  void work(Pair& pair, unsigned number) {
    for (;;) {
      gate_.arrive_and_wait();
      if (way_ == CopyingTask::stop) return;
      std::uint64_t seed = seed_ * most_threads + number;
      write_content(pair.src.data(), pair.src.size(), seed);
      gate_.arrive_and_wait();
      pair.begin_ns = now_ns();
      int status = way_ == CopyingTask::haul ? copy_by_haul(pair) : copy_by_memcpy(pair);
      pair.end_ns = now_ns();
      gate_.arrive_and_wait();
      try {
        tools::require(status, "haul_wait()");
        check_content(pair.dst.data(), pair.dst.size(), seed);
      } catch (...) {
        if (!failed_.exchange(true)) failure_ = std::current_exception();
      }
      gate_.arrive_and_wait();
    }
  }

  int copy_by_haul(Pair& pair) const {
    int worst = 0;
    haul_ticket tickets[window];
    for (std::size_t i = 0; i < rounds * window; ++i) {
      std::size_t at = i % window;
      if (i >= window) worst = std::min(worst, haul_wait(tickets[at]));
      tickets[at] = haul_copy(pair.dst.data() + at * bytes_, pair.src.data() + at * bytes_, bytes_);
    }
    for (haul_ticket ticket : tickets) worst = std::min(worst, haul_wait(ticket));
    return worst;
  }

  int copy_by_memcpy(Pair& pair) const {
    for (std::size_t i = 0; i < rounds * window; ++i) {
      std::size_t begin = i % window * bytes_;
      glibc_memcpy(pair.dst.data() + begin, pair.src.data() + begin, bytes_);
    }
    return 0;
  }

  std::size_t bytes_;
  std::vector<std::unique_ptr<Pair>> buffers_;
  std::barrier<> gate_;
  CopyingTask way_ = CopyingTask::memcpy;  // written before the gate opens, read after it
  std::uint64_t seed_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

Row measure(SuiteRun& session, unsigned count, std::size_t bytes) {
  CopyingThreads crew(count, bytes);
  Buffer dst(bytes, line_bytes), src(bytes);
  wake_mover();
  MoverWatch watch(haul_request_copy(dst.data(), src.data(), bytes));
  Samples haul, memcpy;
  interleave(session.options.quick ? 7 : 31, {[&](bool measured) {
                                                wake_mover();
                                                double ns = crew.round(CopyingTask::haul);
                                                if (measured) haul.push_back(ns);
                                              },
                                              [&](bool measured) {
                                                double ns = crew.round(CopyingTask::memcpy);
                                                if (measured) memcpy.push_back(ns);
                                              }});
  WhoCopied mover = watch.finish();
  auto moved = static_cast<double>(count * rounds * window * bytes);
  Row row = {{"scheme", mover.scheme},
             {"engine", mover.engine},
             {"threads", count},
             {"size_bytes", bytes},
             {"window", window},
             {"haul_gbps", round3(moved / median(haul))},
             {"memcpy_gbps", round3(moved / median(memcpy))}};
  put_ratio(row, "speedup", ratio_of(memcpy, haul));
  end_row(row, mover, haul.size());
  return row;
}

void run_threads(SuiteRun& session, std::vector<Row>& rows) {
  const std::vector<std::size_t> sizes =
      sizes_or(session.options, {std::size_t{64} << 10, std::size_t{1} << 20});
  // A thread inherits the CPU mask of the thread that starts it; these are to run on all CPUs.
  os::unpin_thread();
  double done = 0;
  for (std::size_t bytes : sizes) {
    for (unsigned count = 1; count <= most_threads; ++count) {
      session.options.progress(done++ / static_cast<double>(most_threads * sizes.size()),
                               fmt::format("{} x {}", count, tools::show_bytes(bytes)));
      rows.push_back(measure(session, count, bytes));
    }
  }
  os::pin_thread(static_cast<unsigned>(session.stage.caller_cpu()));
}

constexpr auto threads_columns = columns_of(
    Column{"threads", "threads", Unit::count}, column::size, column::scheme, column::haul_gbps,
    column::memcpy_gbps, column::speedup, column::speedup_q25, column::speedup_q75);

}  // namespace

const Suite threads_suite{"threads",
                          "one to eight threads that submit, against as many that memcpy",
                          run_threads, threads_columns};

}  // namespace haul::bench
