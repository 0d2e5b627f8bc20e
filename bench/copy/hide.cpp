// hide: a caller submits a copy, computes, waits, and reads all that was copied. How much does the
// copy still cost? Each repetition has four runs side by side: haul and memcpy, each timed as a
// whole and in parts.
#include <algorithm>

#include "bench/copy/schemes/measurement.hpp"
#include "bench/copy/schemes/schemes.hpp"
#include "bench/kit/columns.hpp"
#include "bench/kit/stats.hpp"
#include "bench/kit/trial.hpp"
#include "bench/kit/work.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr double least_compute_ns = 5000;
constexpr double least_overlap_copy_ns = 200;

class Hide {
 public:
  Hide(const CopyBench& bench, const Case& one)
      : bench_(bench), trial_(bench.caches, one.bytes, one.cache) {
    Samples probe;  // its lower quartile counts: a compute phase several times as long would hide
                    // too much
    for (int i = 0; i < 11; ++i) {
      trial_.prepare();
      probe.push_back(timed_ns([&] { trial_.copy_by_memcpy(); }));
    }
    steps_ = compute_steps(std::max(least_compute_ns, quantile(probe, 0.25)));
  }

  CopyTrial& trial() { return trial_; }

  void run(unsigned repetitions) {
    interleave(repetitions, {[&](bool measured) { haul_whole(measured); },
                             [&](bool measured) { memcpy_whole(measured); },
                             [&](bool measured) { haul_parts(measured); },
                             [&](bool measured) { memcpy_parts(measured); }});
  }

  // Submits, computes, and waits; what is computed costs the caller nothing here.
  int copy_apart(CpuMeter& meter) {
    haul_ticket ticket = trial_.copy();
    meter.apart([&] { work(); });
    return bench_.wait(ticket);
  }

  // Wholes: total (haul), serial (memcpy). Parts: memcpy, compute, read; haul_unread, copy,
  // remote_read.
  Findings figures;

 private:
  void work() { keep(compute(steps_)); }
  void read() { keep(vector_sum(trial_.dst(), trial_.bytes())); }

  void haul_whole(bool measured) {
    const double ns = trial_.time_ns([&] {
      haul_ticket ticket = trial_.copy();
      work();
      const int status = bench_.wait(ticket);
      read();
      return status;
    });
    if (measured) figures["total"].push_back(ns);
  }

  void memcpy_whole(bool measured) {
    const double ns = trial_.time_ns([&] {
      trial_.copy_by_memcpy();
      work();
      read();
      return 0;
    });
    if (measured) figures["serial"].push_back(ns);
  }

  void haul_parts(bool measured) {
    trial_.prepare();
    std::uint64_t begin = fenced_ticks();
    haul_ticket ticket = trial_.copy();
    work();
    const int status = bench_.wait(ticket);
    std::uint64_t copied = fenced_ticks();
    read();
    std::uint64_t end = fenced_ticks();
    tools::require(status, "haul_wait()");
    trial_.check();

    const double copy_ns = trial_.time_ns([&] { return bench_.wait(trial_.copy()); });
    if (!measured) return;
    figures["haul_unread"].push_back(span_ns(copied - begin));
    figures["remote_read"].push_back(span_ns(end - copied));
    figures["copy"].push_back(copy_ns);
  }

  void memcpy_parts(bool measured) {
    trial_.prepare();
    std::uint64_t begin = fenced_ticks();
    trial_.copy_by_memcpy();
    std::uint64_t copied = fenced_ticks();
    work();
    std::uint64_t computed = fenced_ticks();
    read();
    std::uint64_t end = fenced_ticks();
    trial_.check();
    if (!measured) return;
    figures["memcpy"].push_back(span_ns(copied - begin));
    figures["compute"].push_back(span_ns(computed - copied));
    figures["read"].push_back(span_ns(end - computed));
  }

  const CopyBench& bench_;
  CopyTrial trial_;
  std::uint64_t steps_ = 0;
};

Row hide_row(const Case& one, const Findings& f) {
  const Ratio serial = ratio_of(f.of("total"), f.of("serial"));
  const double memcpy_ns = median(f.of("memcpy")), copy_ns = median(f.of("copy"));
  const double compute_ns = median(f.of("compute")), total_ns = median(f.of("total"));
  const double bound_ns = median(sum_of(f.of("compute"), f.of("read")));
  // Paper 000: (Tcopy + Tcompute - Ttotal) / Tcopy, without the read; Tcopy is the faster way to
  // copy. For a copy that takes hardly longer than one step of the clock, overlap means nothing.
  double best_copy_ns = std::min(memcpy_ns, copy_ns);
  Row overlap = nullptr;
  if (best_copy_ns >= least_overlap_copy_ns) {
    double hidden_ns = best_copy_ns + compute_ns - median(f.of("haul_unread"));
    overlap = round3(hidden_ns / best_copy_ns);
  }
  Row row = begin_row(f.mover, one);
  row["memcpy_ns"] = round1(memcpy_ns);
  row["compute_ns"] = round1(compute_ns);
  row["read_ns"] = round1(median(f.of("read")));
  row["total_ns"] = round1(total_ns);
  row["bound_ns"] = round1(bound_ns);
  row["serial_ns"] = round1(median(f.of("serial")));
  row["ratio_serial"] = round3(serial.median);
  row["ratio_q25"] = round3(serial.low);
  row["ratio_q75"] = round3(serial.high);
  row["over_bound_per_memcpy"] = round3(memcpy_ns > 0 ? (total_ns - bound_ns) / memcpy_ns : 0);
  row["copy_ns"] = round1(copy_ns);
  row["overlap"] = overlap;
  row["remote_read_ns"] = round1(median(f.of("remote_read")));
  end_row(row, f.mover, f.of("total").size());
  return row;
}

Findings measure_hide(const CopyBench& bench, const Case& one) {
  Hide hide(bench, one);
  hide.trial().prepare();
  const MoverWatch watch(request_of(hide.trial()));
  hide.run(bench.repetitions(one.bytes));
  hide.figures.mover = watch.finish();
  add_costs(
      bench, hide.trial(), [&](CpuMeter& meter) { return hide.copy_apart(meter); }, hide.figures);
  return hide.figures;
}

void run_hide(SuiteRun& session, std::vector<Row>& rows) {
  run_measurement(session, rows, hide_measurement, all_cases(session));
}

constexpr auto hide_columns = columns_of(
    column::placement, column::cache, column::size, column::scheme, column::memcpy_ns,
    Column{"compute_ns", "compute", Unit::ns}, Column{"read_ns", "read", Unit::ns},
    Column{"remote_read_ns", "read moved", Unit::ns}, Column{"bound_ns", "bound", Unit::ns},
    Column{"serial_ns", "serial", Unit::ns}, column::total_ns, column::overlap,
    Column{"ratio_serial", "total/serial", Unit::ratio}, column::ratio_q25, column::ratio_q75);

}  // namespace

const CopyMeasurement hide_measurement{"hide", measure_hide, hide_row};

const Suite hide_suite{
    "hide",   "copy, compute, read: how much of the copy hides behind the compute",
    run_hide, hide_columns,
    true,     nullptr,
    true};

}  // namespace haul::bench
