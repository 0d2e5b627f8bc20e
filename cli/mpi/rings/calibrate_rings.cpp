#include "cli/mpi/rings/calibrate_rings.hpp"

#include <fmt/format.h>
#include <haul/haul.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/knobs.hpp"
#include "base/machine/busy.hpp"
#include "base/machine/topology.hpp"
#include "base/os/os.hpp"
#include "cli/kit/terminal.hpp"

namespace haul::cli {
namespace {

using CpuPair = std::pair<unsigned, unsigned>;

// Two CPUs as far apart as the first of these distances (topology.hpp) that any two have. The last
// ones: the first CPU serves most interrupts.
std::optional<CpuPair> pair_at(const Topology& topology,
                               std::initializer_list<unsigned> distances) {
  for (const unsigned wanted : distances) {
    for (unsigned i = topology.allowed_count; i-- > 1;) {
      for (unsigned k = i; k-- > 0;) {
        if (distance(topology.allowed[k], topology.allowed[i]) == wanted)
          return CpuPair{topology.allowed[k].cpu, topology.allowed[i].cpu};
      }
    }
  }
  return std::nullopt;
}

// Empty: `ring` was measured.
std::string measure_between(const CpuPair& cpus, const RaceProgress& progress,
                            HaulPrivateRing& ring) {
  std::string why;
  // The measuring thread binds itself to a CPU, which the caller's must not be.
  std::thread measuring([&] {
    const std::unique_ptr<RingPair> pair = RingPair::make(cpus.first, cpus.second);
    if (pair == nullptr) {
      why =
          "there are no threads or no memory (70 MiB) to measure messages with; free some and try "
          "again";
      return;
    }
    if (const auto best = race_rings(*pair, progress)) {
      ring = *best;
    } else {
      why =
          "the CPUs were busy with other work while messages were measured, so usual figures or "
          "those of before hold; "
          "run haul tune again when they are quiet";
    }
  });
  measuring.join();
  return why;
}

}  // namespace

RingCalibration calibrate_rings(const RaceProgress& progress) {
  RingCalibration result;
  if (const char* missing = RingPair::missing()) {
    result.why = fmt::format("messages between processes were not measured, since {}", missing);
    return result;
  }
  const auto topology = std::make_unique<Expected<Topology>>(read_topology(""));
  if (!*topology) {
    result.why = topology->error().sentence;
    return result;
  }
  const std::optional<CpuPair> near = pair_at(**topology, {2, 1}),
                               far = pair_at(**topology, {4, 3});
  if (!near && !far) {
    result.why =
        "messages between processes were not measured, since this process may use one CPU only";
    return result;
  }
  const double share = near && far ? 0.5 : 1;
  if (near) {
    result.why = measure_between(
        *near, [&](double part) { progress(part * share); }, result.near);
  }
  if (far && result.why.empty()) {
    result.why = measure_between(
        *far, [&](double part) { progress(1 - share + part * share); }, result.far);
  }
  if (!result.why.empty()) return result;
  if (haul_private_keep_rings(&result.near, &result.far) != HAUL_OK) result.why = haul_last_error();
  return result;
}

void calibrate_before_job() {
  constexpr std::uint64_t good_for_s = std::uint64_t{30} * 24 * 3600;
  constexpr std::uint64_t off = 1;  // of on|off
  if (knob_number(Knob::tune_background) == off || RingPair::missing() != nullptr) return;
  HaulPrivateMessageLimits limits;
  haul_private_message_limits(&limits);
  if (limits.near.measured_at_s + good_for_s > os::unix_time_s() || os::allowed_cpus() < 2 ||
      cpus_are_taken())
    return;
  ProgressBar bar("calibrating");
  // Rings are kept beside the copies' figures, which take longer where another process has the
  // mover's core, and which that process stores then.
  const auto show = [](int percent, void* to) {
    static_cast<ProgressBar*>(to)->show(percent / 200.0, "copies");
  };
  if (limits.measured || haul_tune(show, &bar) == HAUL_OK)
    calibrate_rings([&bar](double share) { bar.show(0.5 + share / 2, "messages"); });
  haul_shutdown();
}

}  // namespace haul::cli
