// split (paper 000, Fig. 7): what a submit, a test, and a submit that wakes the mover cost the
// caller; and how long the copy itself takes.
#include <array>

#include "base/machine/cpu.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/stats.hpp"
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

  // The time of `body`, which submits and returns a status. The copies end after the clock has
  // stopped.
  template <class Body>
  double submit_ns(const Body& body) {
    int status = 0;
    const double ns = timed_ns([&] { status = body(); });
    tools::require(status, "haul_submit()");
    tools::require(haul_drain(), "haul_drain()");
    trial.check();
    return ns;
  }

  // All sixteen copy the same bytes to the same place, because only the hand-over is timed.
  template <class Body>
  void sixteen(bool measured, Samples& samples, const Body& body) {
    trial.prepare();
    const double ns = submit_ns(body);
    if (measured) samples.push_back(ns * per_row);
  }

  void submits(bool measured) {
    std::array<haul_ticket, in_a_row> tickets;
    sixteen(measured, submit, [&] {
      int taken = 0;
      for (haul_ticket& ticket : tickets) taken += haul_submit(&request, 1, &ticket);
      return taken == static_cast<int>(in_a_row) ? 0 : HAUL_EAGAIN;
    });
  }

  void batches(bool measured) {
    std::array<haul_request, in_a_row> requests;
    requests.fill(request);
    std::array<haul_ticket, in_a_row> tickets;
    sixteen(measured, batch,
            [&] { return haul_submit(requests.data(), in_a_row, tickets.data()); });
  }

  void copies(bool measured) {
    sixteen(measured, haul_copy, [&] {
      for (std::size_t i = 0; i < in_a_row; ++i) (void)trial.copy();
      return 0;
    });
  }

  // One copy, which the caller only watches: the time that the mover alone needs. Then tests of a
  // finished ticket.
  void tests(bool measured) {
    haul_ticket ticket{};
    const double copy_ns = trial.time_ns([&] {
      int status = haul_submit(&request, 1, &ticket);
      while (status >= 0 && (status = haul_test(ticket)) == 0) cpu_relax();
      return status;
    });
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
      wake.push_back(submit_ns([&] { return haul_submit(&request, 1, &ticket); }));
    }
  }
};

Row measure(SuiteRun& session, const Case& one) {
  const std::size_t bytes = one.bytes;
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

void run_split(SuiteRun& session, std::vector<Row>& rows) {
  measure_cases(session, rows, cold_cases(session, default_sizes()), measure);
}

constexpr auto split_columns =
    columns_of(column::size, column::scheme, column::submit_ns,
               Column{"batch_submit_ns", "in a batch", Unit::ns},
               Column{"haul_copy_ns", "haul_copy()", Unit::ns}, Column{"test_ns", "test", Unit::ns},
               Column{"wake_ns", "submit asleep", Unit::ns}, column::copy_ns);

}  // namespace

const Suite split_suite{"split",
                        "what one submit, test and wake cost the caller (paper 000, Fig. 7)",
                        run_split, split_columns};

}  // namespace haul::bench
