// The decision, its thresholds and its reasons.
#include "plan/plan.hpp"

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace haul::plan {
namespace {

[[gnu::format(printf, 2, 3)]] void say(Reasons* reasons, const char* format, ...) noexcept {
  if (reasons == nullptr || reasons->count == Reasons::max_count) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(reasons->text[reasons->count++], sizeof reasons->text[0], format, arguments);
  va_end(arguments);
}

double round_trip(const Inputs& inputs) noexcept {
  return inputs.round_trip_ns > 0 ? inputs.round_trip_ns : inputs.calibration.round_trip_ns;
}

// What reading a line that the mover wrote costs extra, at the distance of the cores as it is now.
// At least a five-hundredth of the round trip, whatever was measured when the cores were elsewhere:
// Zen 5 showed 0.0022 to 0.0027 of it, from siblings of one core (80 ns) to different caches (500
// ns).
double remote_line(const Inputs& inputs) noexcept {
  constexpr double least_share = 0.002;
  const double measured_at = inputs.calibration.round_trip_ns;
  const double now = round_trip(inputs);
  const double scaled =
      inputs.calibration.remote_line_ns * (measured_at > 0 ? now / measured_at : 1.0);
  return std::max(scaled, least_share * now);
}

// What a hand-over costs the caller whatever the length: the submit, and noticing the end.
double hand_over_ns(const Inputs& inputs) noexcept {
  const Calibration& figures = inputs.calibration;
  const double wake = inputs.mover == MoverState::asleep ? figures.wake_ns
                      : inputs.mover == MoverState::none ? figures.start_ns
                                                         : 0;
  return figures.submit_ns + 2 * round_trip(inputs) + wake;
}

// What a copy of this length costs the caller a line at the least: the data may be as near as the
// caches are large, unless its source is known to lie in memory.
double inline_line_ns(const Inputs& inputs, std::size_t length, bool in_memory) noexcept {
  const Calibration& figures = inputs.calibration;
  if (in_memory) return figures.cold_line_ns;
  if (length <= inputs.l2_bytes / 2) return figures.hot_line_ns;  // both sides must fit
  if (length <= inputs.l3_bytes / 2) return figures.l3_line_ns;
  return figures.cold_line_ns;
}

// Does handing over pay? Twice over: a caller that computes meanwhile must gain, though it then
// reads lines that another core wrote; and one that waits at once must not lose more than a
// twentieth.
bool pays(const Inputs& inputs, std::size_t length, bool in_memory) noexcept {
  constexpr double probe_ns = 250, tolerable_loss = 0.05;
  const double lines = static_cast<double>(length) / 64;
  const double inline_ns = lines * inline_line_ns(inputs, length, in_memory);
  const double overhead_ns = hand_over_ns(inputs) + (in_memory ? probe_ns : 0);
  return inline_ns - lines * remote_line(inputs) > overhead_ns &&
         inline_ns * tolerable_loss >= hand_over_ns(inputs);
}

// The smallest length from which on handing over always pays.
std::uint64_t threshold_of(const Inputs& inputs, bool in_memory) noexcept {
  if (inputs.settings.inline_bytes != UINT64_MAX) return inputs.settings.inline_bytes;
  std::uint64_t threshold = UINT64_MAX;
  for (unsigned log2 = 40; log2 >= 12; --log2) {
    for (unsigned quarter = 4; quarter-- > 0;) {
      const std::uint64_t length = (std::uint64_t{4} + quarter) << (log2 - 2);
      if (!pays(inputs, length, in_memory)) return threshold;
      threshold = length;
    }
  }
  return threshold;
}

int index_of(const Inputs& inputs, const char* name) noexcept {
  for (std::size_t i = 0; i < inputs.engine_count; ++i) {
    if (std::strcmp(inputs.engines[i].name, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

// What the service uses is its own choice; this is what it will be.
int engine_of_service(const Inputs& inputs, Reasons* reasons) noexcept {
  const bool mapped = inputs.request.service_reach == Reach::mapped;
  say(reasons, mapped ? "Engine cpu: the service has this memory mapped."
                      : "Engine cma: the service reaches private memory through the kernel only; "
                        "memory from haul_alloc() it maps.");
  return index_of(inputs, mapped ? "cpu" : "cma");
}

int find_engine(const Inputs& inputs, Reasons* reasons) noexcept {
  const RequestFacts& request = inputs.request;
  const auto fits = [&](std::size_t i) {
    const EngineView& engine = inputs.engines[i];
    return engine.available && engine.reaches && (!request.checked || engine.checked);
  };
  if (const int set = inputs.settings.engine;
      set >= 0 && static_cast<std::size_t>(set) < inputs.engine_count) {
    const EngineView& engine = inputs.engines[set];
    // An engine that may stop half-way cannot take an overlapping copy: the rest would start from
    // overwritten bytes.
    if (fits(static_cast<std::size_t>(set)) && (!request.overlapping || engine.synchronous)) {
      say(reasons, "Engine %s: HAUL_PLAN_ENGINE asks for it.", engine.name);
      return set;
    }
    say(reasons,
        "HAUL_PLAN_ENGINE asks for %s, which cannot do this request; another engine is chosen.",
        engine.name);
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

// Who moves: the caller or the dedicated core.
Mover choose_mover(const Inputs& inputs, Reasons* reasons) noexcept {
  const RequestFacts& request = inputs.request;
  // A fill reads nothing: it costs its caller about as much as a copy of half its length.
  const std::size_t length =
      request.operation == Operation::fill ? request.length / 2 : request.length;
  const Settings& settings = inputs.settings;
  const Mover dedicated = dedicated_for(inputs);
  const char* core = dedicated == Mover::service ? "The node's service" : "A dedicated core";
  if (request.granted) {
    say(reasons, "%s: only it reaches memory that another process has granted.",
        dedicated == Mover::service ? "The node's service copies"
                                    : "The node's service is missing");
    return Mover::service;
  }
  if (dedicated == Mover::caller) {
    say(reasons,
        inputs.mover == MoverState::denied
            ? "The caller copies: another process leases the node's mover core."
            : "The caller copies: no dedicated core is to be had (one CPU, or no thread).");
    if (inputs.service.attached) {
      say(reasons,
          "The node's service is there, but does not reach this memory or cannot do this "
          "request; memory from haul_alloc() it reaches.");
    }
    return Mover::caller;
  }
  if (request.other_rights) {
    say(reasons,
        "The caller copies: its credentials or protection keys are not the mover's, and memory is "
        "reached with the rights of who asks.");
    return Mover::caller;
  }
  if (inputs.held) {
    say(reasons, "The caller copies: a fork or a shutdown is under way.");
    return Mover::caller;
  }
  if (inputs.ring_full) {
    say(reasons, "The caller copies: its ring is full, so whoever asks for more does some.");
    return Mover::caller;
  }
  if (request.force_inline || settings.mover_caller) {
    say(reasons, "The caller copies: %s.",
        request.force_inline ? "HAUL_INLINE asks for it" : "HAUL_PLAN_MOVER=caller");
    return Mover::caller;
  }
  const bool forced = dedicated == Mover::service ? settings.mover_service : settings.mover_thread;
  if (request.force_dedicated || forced) {
    say(reasons, "%s copies: %s.", core,
        request.force_dedicated ? "HAUL_DEDICATED asks for it" : "HAUL_PLAN_MOVER asks for it");
    return dedicated;
  }
  if (request.fenced_behind) {
    say(reasons,
        "%s copies: a fence, and earlier requests are pending; the caller need not wait for them.",
        core);
    return dedicated;
  }
  const Thresholds thresholds = thresholds_for(inputs, dedicated);
  const bool in_memory = request.source_in_memory;
  const std::uint64_t threshold = in_memory ? thresholds.in_memory : thresholds.any;
  const char* where = in_memory ? " for a source in memory" : " wherever the source lies";
  if (length < threshold && length >= thresholds.piece && request.burst_bytes >= thresholds.any) {
    say(reasons,
        "%s copies: with what this thread submitted since it last looked at a ticket it makes %llu "
        "bytes, and from %llu on handing over pays.",
        core, static_cast<unsigned long long>(request.burst_bytes),
        static_cast<unsigned long long>(thresholds.any));
    return dedicated;
  }
  if (length >= threshold) {
    say(reasons, "%s copies: %zu bytes are at least the %llu from which handing over pays%s.", core,
        length, static_cast<unsigned long long>(threshold), where);
    return dedicated;
  }
  if (threshold == UINT64_MAX) {
    say(reasons,
        "The caller copies: at this distance of the cores (round trip %.0f ns) handing over never "
        "pays%s.",
        round_trip(inputs), where);
  } else {
    say(reasons,
        "The caller copies: %zu bytes are fewer than the %llu from which handing over pays%s.",
        length, static_cast<unsigned long long>(threshold), where);
  }
  if (!in_memory && length >= thresholds.in_memory) {
    say(reasons, "From %llu bytes on it would pay if the source lay in memory, but it is cached.",
        static_cast<unsigned long long>(thresholds.in_memory));
  }
  return Mover::caller;
}

void explain_costs(const Inputs& inputs, Reasons* reasons) noexcept {
  static constexpr const char* states[] = {"not started yet", "awake", "asleep", "denied its core",
                                           "impossible"};
  const double lines = static_cast<double>(inputs.request.length) / 64;
  say(reasons,
      "Handing over costs %.1f us (mover %s, round trip %.0f ns), then %.2f ns for each line the "
      "caller reads back.",
      hand_over_ns(inputs) / 1000, states[static_cast<unsigned>(inputs.mover)], round_trip(inputs),
      remote_line(inputs));
  const double line_ns =
      inline_line_ns(inputs, inputs.request.length, inputs.request.source_in_memory);
  say(reasons, "Copying it itself costs the caller %s%.1f us (%.2f ns a line%s).",
      inputs.request.source_in_memory ? "about " : "at least ", lines * line_ns / 1000, line_ns,
      inputs.request.source_in_memory ? "" : ", as if all were in the nearest cache it fits");
  say(reasons, "Figures: %s.",
      inputs.calibration.measured ? "measured on this machine"
                                  : "safe defaults; haul tune measures this machine");
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
                       inputs.request.service_reach != Reach::none;
  const bool thread = inputs.mover != MoverState::denied && inputs.mover != MoverState::impossible;
  // What it has mapped the service moves as fast as a thread would, on a core that all share.
  // Private memory a thread moves faster, if it can have a core.
  const bool mapped = inputs.request.service_reach == Reach::mapped;
  if (service && (mapped || settings.mover_service || !thread)) return Mover::service;
  return thread ? Mover::thread : Mover::caller;
}

Thresholds thresholds_for(const Inputs& inputs, Mover dedicated) noexcept {
  if (dedicated != Mover::service) return inputs.thresholds;
  if (inputs.request.service_reach == Reach::mapped)
    return inputs.service.asleep ? inputs.mapped_asleep : inputs.mapped;
  const std::uint64_t from = inputs.settings.inline_bytes != UINT64_MAX
                                 ? inputs.settings.inline_bytes
                                 : kernel_reach_from_bytes;
  return Thresholds{from, from, from};
}

Thresholds thresholds_of(const Inputs& inputs) noexcept {
  const std::uint64_t any = threshold_of(inputs, false);
  const std::uint64_t piece = 2 * min_chunk_bytes(round_trip(inputs));
  return Thresholds{std::min(threshold_of(inputs, true), any), any, std::min(piece, any)};
}

Plan make_plan(const Inputs& inputs, Reasons* reasons) noexcept {
  Plan plan;
  const RequestFacts& request = inputs.request;
  plan.mover = choose_mover(inputs, reasons);
  plan.engine = plan.mover == Mover::service ? engine_of_service(inputs, reasons)
                                             : find_engine(inputs, reasons);
  const std::uint32_t block_log2 = inputs.settings.block_log2;
  if (request.overlapping) {
    plan.chunks = Chunks::single(request.length, block_log2);
    say(reasons, "One chunk: the sides overlap, so the bytes must move in one direction.");
  } else if (plan.mover == Mover::caller) {
    plan.chunks = Chunks::single(request.length, block_log2);
  } else {
    plan.chunks = cut_for_mover(request.length, min_chunk_bytes(round_trip(inputs)), block_log2);
    const unsigned largest = plan.chunks.taper;  // the one with the odd blocks
    say(reasons,
        "%u chunk%s of up to %zu bytes: a waiter can take some, and finished blocks show early.",
        plan.chunks.count(), plan.chunks.count() == 1 ? "" : "s",
        plan.chunks.end(largest) - plan.chunks.begin(largest));
  }
  explain_costs(inputs, reasons);
  return plan;
}

const char* scheme_of(const Plan& plan, const Inputs& inputs) noexcept {
  const bool device = plan.engine >= 0 && inputs.engines[plan.engine].device;
  if (plan.mover == Mover::caller) return device ? "SCI" : "SCNI";
  return device ? "MCI" : "MCNI";
}

}  // namespace haul::plan
