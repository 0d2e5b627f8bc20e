// bandwidth: a size cut into a window of requests in flight, against one memcpy of that size.
#include <algorithm>
#include <array>

#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t widest_window = 8;
constexpr std::size_t least_piece_bytes = 64;

// Pieces of whole lines, but the last.
struct Cut {
  std::size_t window, piece_bytes;
  explicit Cut(std::size_t bytes)
      : window(std::clamp<std::size_t>(bytes / least_piece_bytes, 1, widest_window)),
        piece_bytes(window == 1 ? bytes : bytes / window / line_bytes * line_bytes) {}
};

int copy_in_pieces(CopyTrial& trial, const Cut& cut) {
  std::array<haul_ticket, widest_window> tickets;
  for (std::size_t i = 0; i < cut.window; ++i) {
    std::size_t begin = i * cut.piece_bytes;
    std::size_t bytes = i + 1 == cut.window ? trial.bytes() - begin : cut.piece_bytes;
    tickets[i] = haul_copy(trial.dst() + begin, trial.src() + begin, bytes);
  }
  int status = 0;
  for (std::size_t i = 0; i < cut.window; ++i) status = std::min(status, haul_wait(tickets[i]));
  return status;
}

Row measure(SuiteRun& session, const Case& one) {
  CopyTrial trial(session.caches, one.bytes, one.cache);
  Cut cut(one.bytes);
  Samples haul, memcpy;
  trial.prepare();
  MoverWatch watch(haul_request_copy(trial.dst(), trial.src(), cut.piece_bytes));
  interleave(repetitions_of(one.bytes, session.options.quick),
             {[&](bool measured) {
                trial.prepare();
                int status = 0;
                double ns = timed_ns([&] { status = copy_in_pieces(trial, cut); });
                tools::require(status, "haul_wait()");
                trial.check();
                if (measured) haul.push_back(ns);
              },
              [&](bool measured) {
                trial.prepare();
                double ns =
                    timed_ns([&] { glibc_memcpy(trial.dst(), trial.src(), trial.bytes()); });
                trial.check();
                if (measured) memcpy.push_back(ns);
              }});
  WhoCopied mover = watch.finish();
  Ratio speedup = ratio_of(memcpy, haul);
  // A byte a nanosecond is a GB/s.
  auto gbps = [&](const Samples& samples) {
    return round3(static_cast<double>(one.bytes) / std::max(median(samples), 0.1));
  };
  return {{"scheme", mover.scheme},
          {"engine", mover.engine},
          {"cache", cache_name(one.cache)},
          {"placement", ""},
          {"size_bytes", one.bytes},
          {"window", cut.window},
          {"haul_gbps", gbps(haul)},
          {"memcpy_gbps", gbps(memcpy)},
          {"speedup", round3(speedup.median)},
          {"speedup_q25", round3(speedup.low)},
          {"speedup_q75", round3(speedup.high)},
          {"haul_ns", round1(median(haul))},
          {"memcpy_ns", round1(median(memcpy))},
          {"dedicated_share", round3(mover.dedicated_share)},
          {"repetitions", haul.size()}};
}

}  // namespace

void run_bandwidth(SuiteRun& session, std::vector<Row>& rows) {
  measure_cases(session, rows, measure);
}

}  // namespace haul::bench
