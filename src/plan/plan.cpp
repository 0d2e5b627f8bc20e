// The decision: the mover, its engine, and how the request is cut.
#include "plan/plan.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "plan/reasons.hpp"
#include "plan/thresholds.hpp"

namespace haul::plan {
namespace {

int index_of(const Inputs& inputs, const char* name) noexcept {
  for (std::size_t i = 0; i < inputs.engine_count; ++i) {
    if (std::strcmp(inputs.engines[i].name, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

// Which engine the service uses is its own choice; this is what it will choose.
int engine_of_service(const Inputs& inputs, Reasons* reasons) noexcept {
  const bool mapped = inputs.request.service_reach == ServiceReach::mapped;
  say(reasons, mapped ? "Engine cpu: the service has this memory mapped."
                      : "Engine cma: the service reaches private memory through the kernel only; "
                        "it maps memory from haul_alloc().");
  return index_of(inputs, mapped ? "cpu" : "cma");
}

// May the calling thread leave the bytes to a device and return? Somebody must look at the ticket
// then: nobody else polls.
bool caller_may_drive(const Inputs& inputs, const Route& route) noexcept {
  const RequestFacts& request = inputs.request;
  if (request.force_inline || request.notifies) return false;
  return route.reason != Reason::other_rights && route.reason != Reason::held &&
         route.reason != Reason::ring_full;
}

// The engine of the device in whose own memory a side lies: no other reaches it, whatever the
// settings ask for.
int engine_of_device_memory(const Inputs& inputs, Reasons* reasons) noexcept {
  const RequestFacts& request = inputs.request;
  const char* hindered = request.checked       ? "a device does not check addresses"
                         : request.overlapping ? "the sides overlap"
                                               : nullptr;
  for (std::size_t i = 0; hindered == nullptr && i < inputs.engine_count; ++i) {
    const EngineView& engine = inputs.engines[i];
    if (!engine.available || !engine.reaches || engine.synchronous) continue;
    say(reasons, "Engine %s: the memory is its device's own, which no CPU reaches.", engine.name);
    return static_cast<int>(i);
  }
  if (hindered == nullptr)
    hindered = "it is no copy, or its engine is dead (haul_engine() says why)";
  say(reasons, "No engine can do this in a device's own memory: %s.", hindered);
  return -1;
}

int find_engine(const Inputs& inputs, Mover mover, bool may_be_asynchronous,
                Reasons* reasons) noexcept {
  const RequestFacts& request = inputs.request;
  if (request.device_memory) return engine_of_device_memory(inputs, reasons);
  const auto fits = [&](std::size_t i) {
    const EngineView& engine = inputs.engines[i];
    return engine.available && engine.reaches && (!request.checked || engine.checked);
  };
  if (const int set = inputs.settings.engine;
      set >= 0 && static_cast<std::size_t>(set) < inputs.engine_count) {
    const EngineView& engine = inputs.engines[set];
    // An engine that may stop halfway cannot take an overlapping copy: the rest would start from
    // overwritten bytes.
    if (fits(static_cast<std::size_t>(set)) &&
        (engine.synchronous || (may_be_asynchronous && !request.overlapping))) {
      say(reasons, "Engine %s: HAUL_PLAN_ENGINE asks for it.", engine.name);
      return set;
    }
    say(reasons,
        "HAUL_PLAN_ENGINE asks for %s, which cannot do this request; another engine is chosen.",
        engine.name);
  } else if (may_be_asynchronous) {
    if (const int device = choose_device(inputs, mover, reasons); device >= 0) return device;
  }
  for (std::size_t i = 0; i < inputs.engine_count; ++i) {
    if (!fits(i) || !inputs.engines[i].synchronous) continue;
    if (request.checked) {
      say(reasons,
          "Engine %s: a checked request needs one that reports an inaccessible range instead of "
          "faulting.",
          inputs.engines[i].name);
    } else {
      say(reasons, "Engine %s: the first that reaches %s.", inputs.engines[i].name,
          request.self_only ? "this process's memory" : "the peer's memory");
    }
    return static_cast<int>(i);
  }
  say(reasons, "No engine here can do this request; haul info names what is missing.");
  return -1;
}

// route() for one of the planner's requests. For memory that the service has not mapped it need not
// know which dedicated core it would be, only from where on that is worth it.
template <class Probe>
Route route_to(const Inputs& inputs, Mover dedicated, Probe access) noexcept {
  const RequestFacts& request = inputs.request;
  const std::uint64_t bytes = counted_bytes(request.operation, request.length);
  const bool mapped = dedicated == Mover::service && request.service_reach == ServiceReach::mapped;
  Candidate candidate = Candidate::thread;
  if (mapped) candidate = inputs.service.asleep ? Candidate::sleeping_service : Candidate::service;
  ThresholdSet figures = inputs.thresholds;
  if (!mapped) figures.own = thresholds_for(inputs, dedicated);
  Route decided = route(figures, candidate, bytes, std::max(request.burst_bytes, bytes), access);
  if (decided.mover != Mover::caller) decided.mover = dedicated;
  return decided;
}

// Who drives a copy to or from memory of a device's own. Of memory that the device does not know
// its driver copies every byte, so it is a mover's as soon as that takes longer than handing over.
// No thresholds of copies by the CPU hold here: nobody reads there what a mover leaves in his
// cache, and a caller who waits drives the copy himself until the mover is awake.
Route route_staging(const Inputs& inputs, Mover dedicated) noexcept {
  const double lines = static_cast<double>(inputs.request.length) / 64;
  const bool worth = lines * inputs.calibration.cold_line_ns > hand_over_ns(inputs);
  return {worth ? dedicated : Mover::caller, Reason::staged};
}

// Decides by what counts whatever the length, the most compelling reason first.
template <class Probe>
Route choose_mover(const Inputs& inputs, Mover dedicated, Probe access) noexcept {
  const RequestFacts& request = inputs.request;
  const Settings& settings = inputs.settings;
  const bool by_setting =
      dedicated == Mover::service ? settings.mover_service : settings.mover_thread;
  if (request.granted) return {Mover::service, Reason::granted};
  if (dedicated == Mover::caller) return {Mover::caller, Reason::no_core};
  if (request.other_rights) return {Mover::caller, Reason::other_rights};
  if (inputs.held) return {Mover::caller, Reason::held};
  if (inputs.ring_full) return {Mover::caller, Reason::ring_full};
  if (request.force_inline) return {Mover::caller, Reason::inline_asked};
  if (settings.mover_caller) return {Mover::caller, Reason::inline_set};
  if (request.force_dedicated) return {dedicated, Reason::dedicated_asked};
  if (by_setting) return {dedicated, Reason::dedicated_set};
  if (request.fenced_behind) return {dedicated, Reason::fenced};
  if (request.device_memory) return route_staging(inputs, dedicated);
  return route_to(inputs, dedicated, access);
}

}  // namespace

std::size_t min_chunk_bytes(double round_trip_ns) noexcept {
  constexpr double bytes_per_round_trip_ns = 160;  // a fifth of the time goes to taking turns
  const auto wanted =
      static_cast<std::size_t>(std::clamp(round_trip_ns, 0.0, 1e4) * bytes_per_round_trip_ns);
  return std::clamp(std::bit_ceil(wanted), std::size_t{32} << 10, std::size_t{256} << 10);
}

const char* name_of(Mover mover) noexcept {
  switch (mover) {
    case Mover::caller: return "caller";
    case Mover::thread: return "thread";
    case Mover::service: return "service";
  }
  return "caller";
}

Mover dedicated_for(const Inputs& inputs) noexcept {
  const Settings& settings = inputs.settings;
  const bool service = inputs.service.attached && !settings.mover_thread &&
                       inputs.request.service_reach != ServiceReach::none;
  const bool thread = inputs.mover != MoverState::denied && inputs.mover != MoverState::impossible;
  // The service moves what it has mapped as fast as a thread would, on a core that all processes
  // share. A thread moves private memory faster, if it can have a core.
  const bool mapped = inputs.request.service_reach == ServiceReach::mapped;
  if (service && (mapped || settings.mover_service || !thread)) return Mover::service;
  return thread ? Mover::thread : Mover::caller;
}

bool depends_on_access(const Inputs& inputs) noexcept {
  bool asked = false;
  choose_mover(inputs, dedicated_for(inputs), [&] {
    asked = true;
    return Access::cached;
  });
  return asked;
}

Plan make_plan(const Inputs& inputs, Reasons* reasons) noexcept {
  Plan plan;
  const RequestFacts& request = inputs.request;
  const Mover dedicated = dedicated_for(inputs);
  const Route route = choose_mover(inputs, dedicated, [&] { return inputs.request.access; });
  plan.mover = route.mover;
  if (reasons != nullptr) explain_mover(inputs, dedicated, route, reasons);
  const bool may_leave = plan.mover == Mover::thread || caller_may_drive(inputs, route);
  plan.engine = plan.mover == Mover::service ? engine_of_service(inputs, reasons)
                                             : find_engine(inputs, plan.mover, may_leave, reasons);
  const bool is_driven =
      plan.mover == Mover::caller && plan.engine >= 0 && !inputs.engines[plan.engine].synchronous;
  plan.waits = is_driven && !may_leave;
  if (plan.waits) {
    say(reasons, "The caller's thread polls %s until the bytes are there, before it returns.",
        inputs.engines[plan.engine].name);
  } else if (is_driven) {
    say(reasons,
        "The caller's thread hands the bytes to %s and polls it when it looks at the ticket (SCI).",
        inputs.engines[plan.engine].name);
  }
  const std::uint32_t block_log2 = inputs.settings.block_log2;
  if (request.overlapping) {
    plan.chunks = Chunks::single(request.length, block_log2);
    say(reasons, "One chunk: the sides overlap, so the bytes must move in one direction.");
  } else if (plan.mover == Mover::caller && !is_driven) {
    plan.chunks = Chunks::single(request.length, block_log2);
  } else {
    plan.chunks =
        plan.engine >= 0 && inputs.engines[plan.engine].device
            ? cut_for_device(request.length, request.device_memory, block_log2)
            : cut_for_mover(request.length, min_chunk_bytes(round_trip_ns(inputs)), block_log2);
    const unsigned largest = plan.chunks.taper;  // the one with the odd blocks
    say(reasons,
        "%u chunk%s of up to %zu bytes: a waiter can take some, and finished blocks show early.",
        plan.chunks.count(), plan.chunks.count() == 1 ? "" : "s",
        plan.chunks.end(largest) - plan.chunks.begin(largest));
  }
  if (reasons != nullptr) explain_costs(inputs, reasons);
  return plan;
}

const char* scheme_of(const Plan& plan, const Inputs& inputs) noexcept {
  const bool device = plan.engine >= 0 && inputs.engines[plan.engine].device;
  if (plan.mover == Mover::caller) return device ? "SCI" : "SCNI";
  return device ? "MCI" : "MCNI";
}

}  // namespace haul::plan
