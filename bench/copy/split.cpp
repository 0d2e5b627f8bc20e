// split (paper 000, Fig. 7): what a submit, a test, and a submit that wakes the mover cost the
// caller; and how long the copy itself takes.
#include <array>

#include "base/machine/cpu.hpp"
#include "bench/copy/schemes/measurement.hpp"
#include "bench/copy/schemes/schemes.hpp"
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
  const CopyBench& bench;
  CopyTrial trial;
  haul_request request;
  std::array<haul_ticket, in_a_row> tickets{};
  Samples submit, batch, haul_copy, test, wake, copy;

  Split(const CopyBench& b, const Case& one)
      : bench(b), trial(b.caches, one.bytes, one.cache), request(request_of(trial)) {
    request.flags = HAUL_DEDICATED;
  }

  // The time of `body`, which submits the first `count` tickets and returns a status. The copies
  // end after the clock has stopped.
  template <class Body>
  double submit_ns(std::size_t count, const Body& body) {
    int status = 0;
    const double ns = timed_ns([&] { status = body(); });
    tools::require(status, "haul_submit()");
    for (std::size_t i = 0; i < count; ++i) tools::require(bench.wait(tickets[i]), "haul_wait()");
    trial.check();
    return ns;
  }

  // All sixteen copy the same bytes to the same place, because only the hand-over is timed.
  template <class Body>
  void sixteen(bool measured, Samples& samples, const Body& body) {
    trial.prepare();
    const double ns = submit_ns(in_a_row, body);
    if (measured) samples.push_back(ns * per_row);
  }

  void submits(bool measured) {
    sixteen(measured, submit, [&] {
      int taken = 0;
      for (haul_ticket& ticket : tickets) taken += haul_submit(&request, 1, &ticket);
      return taken == static_cast<int>(in_a_row) ? 0 : HAUL_EAGAIN;
    });
  }

  void batches(bool measured) {
    std::array<haul_request, in_a_row> requests;
    requests.fill(request);
    sixteen(measured, batch,
            [&] { return haul_submit(requests.data(), in_a_row, tickets.data()); });
  }

  void copies(bool measured) {
    sixteen(measured, haul_copy, [&] {
      for (haul_ticket& ticket : tickets) ticket = trial.copy();
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

  // (Where no mover can run there is none to wake.)
  void wakes(unsigned repetitions) {
    if (!wake_mover()) return;
    for (unsigned i = 0; i < repetitions; ++i) {
      trial.prepare();
      if (!let_mover_sleep()) return;
      wake.push_back(submit_ns(1, [&] { return haul_submit(&request, 1, tickets.data()); }));
    }
  }
};

Findings measure_split(const CopyBench& bench, const Case& one) {
  Split split(bench, one);
  split.trial.prepare();
  MoverWatch watch(split.request);
  // Sixteen copies a run: as much work as one of sixteen times the size.
  const unsigned repetitions = bench.repetitions(one.bytes * in_a_row);
  interleave(repetitions, {[&](bool measured) { split.submits(measured); },
                           [&](bool measured) { split.batches(measured); },
                           [&](bool measured) { split.tests(measured); }});
  Findings findings;
  findings.mover = watch.finish();
  split.trial.prepare();
  MoverWatch copy_watch(request_of(split.trial));
  interleave(repetitions, {[&](bool measured) { split.copies(measured); }});
  findings.copy_scheme = copy_watch.finish().scheme;
  split.wakes((bench.quick ? quick_wakes : most_wakes) / bench.rounds);
  findings["submit"] = split.submit;
  findings["batch"] = split.batch;
  findings["haul_copy"] = split.haul_copy;
  findings["test"] = split.test;
  findings["wake"] = split.wake;
  findings["copy"] = split.copy;
  add_costs(
      bench, split.trial, [&](CpuMeter&) { return bench.wait(split.trial.copy()); }, findings);
  return findings;
}

Row split_row(const Case& one, const Findings& f) {
  const auto middle = [&](const char* name) { return round1(median(f.of(name))); };
  Row row = {{"scheme", f.mover.scheme},
             {"engine", f.mover.engine},
             {"size_bytes", one.bytes},
             {"submit_ns", middle("submit")},
             {"batch_submit_ns", middle("batch")},
             {"haul_copy_ns", middle("haul_copy")},
             {"haul_copy_scheme", f.copy_scheme},
             {"test_ns", middle("test")},
             {"wake_ns", middle("wake")},
             {"copy_ns", middle("copy")},
             {"dedicated_share", round3(f.mover.dedicated_share)},
             {"repetitions", f.of("submit").size()}};
  if (f.of("wake").empty()) row["wake_ns"] = nullptr;
  return row;
}

void run_split(SuiteRun& session, std::vector<Row>& rows) {
  run_measurement(session, rows, split_measurement, cold_cases(session, default_sizes()));
}

constexpr auto split_columns =
    columns_of(column::size, column::scheme, column::submit_ns,
               Column{"batch_submit_ns", "in a batch", Unit::ns},
               Column{"haul_copy_ns", "haul_copy()", Unit::ns}, Column{"test_ns", "test", Unit::ns},
               Column{"wake_ns", "submit asleep", Unit::ns}, column::copy_ns);

}  // namespace

const CopyMeasurement split_measurement{"split", measure_split, split_row};

const Suite split_suite{
    "split",   "what one submit, test and wake cost the caller (paper 000, Fig. 7)",
    run_split, split_columns,
    false,     nullptr,
    true};

}  // namespace haul::bench
