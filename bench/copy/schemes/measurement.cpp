#include "bench/copy/schemes/measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/machine/cpu.hpp"
#include "tools/failure.hpp"

namespace haul::bench {
namespace {

struct CostColumn {
  const char* samples;
  double CpuSpan::*figure;
};
constexpr std::array<CostColumn, 4> cost_columns = {{{"caller_cpu", &CpuSpan::caller_ns},
                                                     {"mover_cpu", &CpuSpan::mover_ns},
                                                     {"kernel_cpu", &CpuSpan::kernel_ns},
                                                     {"device_cpu", &CpuSpan::device_ns}}};

}  // namespace

int CopyBench::wait(haul_ticket ticket) const {
  if (!by_scheme) return haul_wait(ticket);
  // (A yield would give the core to whoever else wants it, for longer than the copy takes.)
  int status = 0;
  while ((status = haul_test(ticket)) == 0) cpu_relax();
  return std::min(status, 0);
}

const Samples& Findings::of(const std::string& name) const {
  static const Samples none;
  const auto found = samples.find(name);
  return found == samples.end() ? none : found->second;
}

void Findings::append(const Findings& more) {
  for (const auto& [name, values] : more.samples) {
    Samples& own = samples[name];
    own.insert(own.end(), values.begin(), values.end());
  }
}

const CopyMeasurement& measurement_named(const std::string& name) {
  for (const CopyMeasurement* one : {&latency_measurement, &bandwidth_measurement,
                                     &hide_measurement, &split_measurement, &receive_measurement})
    if (name == one->name) return *one;
  throw tools::CommandFailure(
      fmt::format("there is no measurement '{}'; `haul bench` starts them itself", name));
}

void add_costs(const CopyBench& bench, CopyTrial& trial, const CostedCopy& copy,
               Findings& findings) {
  if (!bench.by_scheme) return;
  constexpr unsigned part = 4;  // of the repetitions
  CpuMeter meter;
  const unsigned repetitions = std::max(bench.repetitions(trial.bytes()) / part, 3u);
  for (unsigned r = 0; r <= repetitions; ++r) {
    meter.look();
    trial.prepare();
    int status = 0;
    double wall_ns = 0;
    const CpuSpan span = meter.span([&] { wall_ns = timed_ns([&] { status = copy(meter); }); });
    tools::require(status, "a copy");
    trial.check();
    if (r == 0) continue;
    for (const CostColumn& column : cost_columns)
      findings[column.samples].push_back(span.*column.figure);
    findings["wall"].push_back(wall_ns);
  }
}

void put_costs(Row& row, const Findings& findings) {
  for (const CostColumn& column : cost_columns) {
    const Samples& samples = findings.of(column.samples);
    if (!samples.empty()) row[std::string(column.samples) + "_ns"] = round1(median(samples));
  }
}

}  // namespace haul::bench
