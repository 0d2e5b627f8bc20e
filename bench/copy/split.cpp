// split (paper 000, Fig. 7): what the caller pays for a submit, a test, and a submit that wakes the
// mover; and how long the copy itself takes.
#include <array>

#include "base/cpu.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/suite.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr std::size_t in_a_row = 16;
constexpr unsigned most_wakes = 15, quick_wakes = 4;
constexpr double per_row = 1.0 / static_cast<double>(in_a_row);

struct Split {
  SuiteRun& session;
  CopyTrial trial;
  haul_request request;
  Samples submit, batch, haul_copy, test, wake, copy;

  Split(SuiteRun& s, std::size_t bytes)
      : session(s), trial(s.caches, bytes, CacheState::cold), request(request_of(trial)) {
    request.flags = HAUL_DEDICATED;
  }

  void drain() {
    tools::require(haul_drain(), "haul_drain()");
    trial.check();
  }

  // All sixteen copy the same bytes to the same place: only the hand-over is timed.
  void submits(bool measured) {
    trial.prepare();
    std::array<haul_ticket, in_a_row> tickets;
    int taken = 0;
    double ns = timed_ns([&] {
      for (haul_ticket& ticket : tickets) taken += haul_submit(&request, 1, &ticket);
    });
    tools::require(taken == static_cast<int>(in_a_row) ? 0 : HAUL_EAGAIN, "haul_submit()");
    drain();
    if (measured) submit.push_back(ns * per_row);
  }

  void batches(bool measured) {
    trial.prepare();
    std::array<haul_request, in_a_row> requests;
    requests.fill(request);
    std::array<haul_ticket, in_a_row> tickets;
    int taken = 0;
    double ns = timed_ns([&] { taken = haul_submit(requests.data(), in_a_row, tickets.data()); });
    tools::require(taken, "haul_submit()");
    drain();
    if (measured) batch.push_back(ns * per_row);
  }

  void copies(bool measured) {
    trial.prepare();
    double ns = timed_ns([&] {
      for (std::size_t i = 0; i < in_a_row; ++i) (void)trial.copy();
    });
    drain();
    if (measured) haul_copy.push_back(ns * per_row);
  }

  // One copy, the caller only looking: what the mover alone needs. Then tests of a finished ticket.
  void tests(bool measured) {
    trial.prepare();
    haul_ticket ticket{};
    int status = 0;
    double copy_ns = timed_ns([&] {
      status = haul_submit(&request, 1, &ticket);
      while (status >= 0 && (status = haul_test(ticket)) == 0) cpu_relax();
    });
    tools::require(status, "haul_test()");
    trial.check();
    double test_ns = timed_ns([&] {
      for (std::size_t i = 0; i < in_a_row; ++i)
        keep(static_cast<std::uint64_t>(haul_test(ticket)));
    });
    if (!measured) return;
    copy.push_back(copy_ns);
    test.push_back(test_ns * per_row);
  }

  void wakes(unsigned repetitions) {
    for (unsigned i = 0; i < repetitions; ++i) {
      trial.prepare();
      if (!let_mover_sleep()) return;
      haul_ticket ticket{};
      int taken = 0;
      double ns = timed_ns([&] { taken = haul_submit(&request, 1, &ticket); });
      tools::require(taken, "haul_submit()");
      drain();
      wake.push_back(ns);
    }
  }
};

Row measure(SuiteRun& session, std::size_t bytes) {
  Split split(session, bytes);
  split.trial.prepare();
  MoverWatch watch(split.request);
  // Sixteen copies a run: as much work as one of sixteen times the size.
  interleave(repetitions_of(bytes * in_a_row, session.options.quick),
             {[&](bool measured) { split.submits(measured); },
              [&](bool measured) { split.batches(measured); },
              [&](bool measured) { split.tests(measured); }});
  WhoCopied mover = watch.finish();
  split.trial.prepare();
  MoverWatch copy_watch(request_of(split.trial));
  interleave(repetitions_of(bytes * in_a_row, session.options.quick),
             {[&](bool measured) { split.copies(measured); }});
  WhoCopied copy_mover = copy_watch.finish();
  split.wakes(session.options.quick ? quick_wakes : most_wakes);
  Row row = {{"scheme", mover.scheme},
             {"engine", mover.engine},
             {"size_bytes", bytes},
             {"submit_ns", round1(median(split.submit))},
             {"batch_submit_ns", round1(median(split.batch))},
             {"haul_copy_ns", round1(median(split.haul_copy))},
             {"haul_copy_scheme", copy_mover.scheme},
             {"test_ns", round1(median(split.test))},
             {"wake_ns", round1(median(split.wake))},
             {"copy_ns", round1(median(split.copy))},
             {"dedicated_share", round3(mover.dedicated_share)},
             {"repetitions", split.submit.size()}};
  if (split.wake.empty()) row["wake_ns"] = nullptr;
  return row;
}

}  // namespace

void run_split(SuiteRun& session, std::vector<Row>& rows) {
  const std::vector<std::size_t>& sizes = sizes_or(session.options, default_sizes());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    session.options.progress(static_cast<double>(i) / static_cast<double>(sizes.size()),
                             describe({CacheState::cold, sizes[i]}));
    rows.push_back(measure(session, sizes[i]));
  }
}

}  // namespace haul::bench
