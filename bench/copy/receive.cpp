// receive-overhead (paper 004, Fig. 1): a message has arrived in a buffer, and its receiver has it
// copied to where it is wanted, and computes meanwhile. How much CPU time of the receiver does that
// take, by memcpy and by each engine, and how much of the mover's and the kernel's?
#include "bench/copy/schemes/measurement.hpp"
#include "bench/copy/schemes/schemes.hpp"
#include "bench/kit/columns.hpp"
#include "tools/failure.hpp"
#include "tools/units.hpp"

namespace haul::bench {
namespace {

constexpr double least_compute_ns = 2000, most_compute_ns = 5e6;

class ReceivedCopy {
 public:
  ReceivedCopy(const CopyBench& bench, const Case& one)
      : bench_(bench), cache_(one.cache), trial_(bench.caches, one.bytes, one.cache) {
    Samples probe;
    for (int i = 0; i < 5; ++i)
      probe.push_back(trial_.time_ns([&] { return bench.wait(trial_.copy()); }));
    // So long that the copy can end meanwhile.
    steps_ = compute_steps(std::clamp(2 * median(probe), least_compute_ns, most_compute_ns));
  }

  void by_memcpy(bool measured) {
    arrive();
    const CpuSpan span = meter_.span([&] { trial_.copy_by_memcpy(); });
    const double read_ns = this->read_ns();
    trial_.check();
    if (!measured) return;
    figures["memcpy_cpu"].push_back(span.caller_ns);
    figures["memcpy_read"].push_back(read_ns);
  }

  void by_haul(bool measured) {
    arrive();
    int status = 0;
    double wall_ns = 0;
    const CpuSpan span = meter_.span([&] {
      wall_ns = timed_ns([&] {
        haul_ticket ticket = trial_.copy();
        meter_.apart([&] { keep(compute(steps_)); });
        status = bench_.wait(ticket);
      });
    });
    tools::require(status, "haul_wait()");
    const double read_ns = this->read_ns();
    trial_.check();
    if (!measured) return;
    figures["caller_cpu"].push_back(span.caller_ns);
    figures["mover_cpu"].push_back(span.mover_ns);
    figures["kernel_cpu"].push_back(span.kernel_ns);
    figures["device_cpu"].push_back(span.device_ns);
    figures["wall"].push_back(wall_ns);
    figures["read"].push_back(read_ns);
  }

  CopyTrial& trial() { return trial_; }
  Findings figures;

 private:
  void arrive() {
    meter_.look();
    trial_.prepare();
    if (cache_ != CacheState::peer || bench_.partner_cpu < 0) return;
    rewrite_elsewhere(const_cast<std::byte*>(trial_.src()), trial_.bytes(),
                      static_cast<unsigned>(bench_.partner_cpu));
    wake_mover();
  }
  double read_ns() {
    return timed_ns([&] { keep(vector_sum(trial_.dst(), trial_.bytes())); });
  }

  const CopyBench& bench_;
  CacheState cache_;
  CopyTrial trial_;
  CpuMeter meter_;
  std::uint64_t steps_ = 0;
};

Findings measure_receiving(const CopyBench& bench, const Case& one) {
  ReceivedCopy receiving(bench, one);
  receiving.trial().prepare();
  const MoverWatch watch(request_of(receiving.trial()));
  interleave(bench.repetitions(one.bytes), {[&](bool measured) { receiving.by_memcpy(measured); },
                                            [&](bool measured) { receiving.by_haul(measured); }});
  receiving.figures.mover = watch.finish();
  return receiving.figures;
}

Row receiving_row(const Case& one, const Findings& f) {
  Row row = begin_row(f.mover, one);
  row["memcpy_cpu_ns"] = round1(median(f.of("memcpy_cpu")));
  put_costs(row, f);
  put_ratio(row, "ratio", ratio_of(f.of("caller_cpu"), f.of("memcpy_cpu")));
  row["read_ns"] = round1(median(f.of("read")));
  row["memcpy_read_ns"] = round1(median(f.of("memcpy_read")));
  row["total_ns"] = round1(median(f.of("wall")));
  end_row(row, f.mover, f.of("caller_cpu").size());
  return row;
}

void run_receiving(SuiteRun& session, std::vector<Row>& rows) {
  using tools::kib;
  using tools::mib;
  const bool quick = session.options.quick;
  const std::vector<std::size_t> own =
      quick ? std::vector<std::size_t>{4 * kib, 64 * kib, mib}
            : std::vector<std::size_t>{4 * kib, 16 * kib, 64 * kib, 256 * kib, mib};
  std::vector<Case> cases;
  for (const CacheState cache : {CacheState::hot, CacheState::peer, CacheState::cold}) {
    if (cache == CacheState::peer && session.stage.partner_cpu() < 0) continue;
    for (const std::size_t bytes : sizes_or(session.options, own))
      if (cache != CacheState::hot || bytes <= session.caches.largest(cache))
        cases.push_back({cache, bytes});
  }
  const std::vector<EngineScheme>& schemes = session.options.schemes;
  run_schemes(session, rows, receive_measurement, cases,
              schemes.empty() ? schemes_of_cpu() : schemes);
}

constexpr auto receiving_columns = columns_of(
    column::placement, column::cache, column::size, column::scheme, column::engine,
    column::registration, column::register_ns, Column{"memcpy_cpu_ns", "memcpy CPU", Unit::ns},
    column::caller_cpu, column::ratio, column::ratio_q25, column::ratio_q75, column::mover_cpu,
    column::kernel_cpu, column::device_cpu, Column{"read_ns", "read", Unit::ns},
    Column{"memcpy_read_ns", "memcpy read", Unit::ns}, column::label);

}  // namespace

const CopyMeasurement receive_measurement{"receive-overhead", measure_receiving, receiving_row};

const Suite receive_suite{"receive-overhead",
                          "CPU time of a received message's copy, by memcpy and by each engine "
                          "(paper 004, Fig. 1)",
                          run_receiving,
                          receiving_columns,
                          true,
                          nullptr,
                          true};

}  // namespace haul::bench
