#include "plan/reasons.hpp"

#include <cstdarg>
#include <cstdio>

#include "plan/thresholds.hpp"

namespace haul::plan {
namespace {

using Number = unsigned long long;  // as %llu takes it

// The reasons that come from a length and its thresholds.
void explain_lengths(const Inputs& inputs, Mover dedicated, const Route& route, const char* core,
                     Reasons* reasons) noexcept {
  const RequestFacts& request = inputs.request;
  const Number bytes = counted_bytes(request.operation, request.length);
  const Thresholds thresholds = thresholds_for(inputs, dedicated);
  const bool in_memory = route.reason == Reason::in_memory;
  const bool new_pages = route.reason == Reason::new_pages;
  const Number from = in_memory || new_pages ? thresholds.inline_below : thresholds.mover_from;
  const char* where = in_memory   ? " for a source in memory"
                      : new_pages ? " for a destination without pages"
                                  : " wherever the source lies";
  if (route.mover != Mover::caller && bytes < from) {
    say(reasons,
        "%s copies: with what this thread submitted since it last looked at a ticket there are "
        "%llu bytes, and from %llu on handing over pays.",
        core, Number{request.burst_bytes}, from);
  } else if (route.mover != Mover::caller) {
    say(reasons, "%s copies: %llu bytes are at least the %llu from which handing over pays%s.",
        core, bytes, from, where);
  } else if (from == UINT64_MAX) {
    say(reasons,
        "The caller copies: at this distance of the cores (round trip %.0f ns) handing over never "
        "pays%s.",
        round_trip_ns(inputs), where);
  } else {
    say(reasons,
        "The caller copies: %llu bytes are fewer than the %llu from which handing over pays%s.",
        bytes, from, where);
  }
  if (route.reason == Reason::cached) {
    say(reasons, "From %llu bytes on it would pay if the source lay in memory, but it is cached.",
        Number{thresholds.inline_below});
  }
}

void explain_no_core(const Inputs& inputs, Reasons* reasons) noexcept {
  say(reasons,
      inputs.mover == MoverState::denied
          ? "The caller copies: another process leases the node's mover core."
          : "The caller copies: there is no dedicated core (one CPU, or no thread could be made).");
  if (inputs.service.attached) {
    say(reasons,
        "The node's service runs, but does not reach this memory or cannot do this request; it "
        "reaches memory from haul_alloc().");
  }
}

// The rest of the sentence that says who copies, and why.
const char* ground_of(Reason reason) noexcept {
  switch (reason) {
    case Reason::other_rights:
      return "its credentials or protection keys are not the mover's, and memory is reached with "
             "the rights of the thread that asks";
    case Reason::held: return "a fork or a shutdown is under way";
    case Reason::ring_full: return "its ring is full, so it does some of the work";
    case Reason::inline_asked: return "HAUL_INLINE asks for it";
    case Reason::inline_set: return "HAUL_PLAN_MOVER=caller";
    case Reason::dedicated_asked: return "HAUL_DEDICATED asks for it";
    case Reason::dedicated_set: return "HAUL_PLAN_MOVER asks for it";
    case Reason::fenced:
      return "a fence, and earlier requests are pending; the caller need not wait for them";
    case Reason::staged:
      return "what a device does not know is copied by whoever drives it, which is a mover's where "
             "it takes longer than handing over";
    default: return "";
  }
}

}  // namespace

void say(Reasons* reasons, const char* format, ...) noexcept {
  if (reasons == nullptr || reasons->count == Reasons::max_count) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(reasons->text[reasons->count++], sizeof reasons->text[0], format, arguments);
  va_end(arguments);
}

void explain_mover(const Inputs& inputs, Mover dedicated, const Route& route,
                   Reasons* reasons) noexcept {
  const char* core = dedicated == Mover::service ? "The node's service" : "A dedicated core";
  switch (route.reason) {
    case Reason::granted:
      say(reasons, "%s: only it reaches memory that another process has granted.",
          dedicated == Mover::service ? "The node's service copies"
                                      : "The node's service is missing");
      break;
    case Reason::no_core: explain_no_core(inputs, reasons); break;
    case Reason::large:
    case Reason::in_memory:
    case Reason::new_pages:
    case Reason::small:
    case Reason::cached: explain_lengths(inputs, dedicated, route, core, reasons); break;
    default:
      say(reasons, "%s copies: %s.", route.mover == Mover::caller ? "The caller" : core,
          ground_of(route.reason));
  }
}

void explain_costs(const Inputs& inputs, Reasons* reasons) noexcept {
  static constexpr const char* states[] = {"not started yet", "awake", "asleep", "denied its core",
                                           "impossible"};
  const double lines = static_cast<double>(inputs.request.length) / 64;
  say(reasons,
      "Handing over costs %.1f us (mover %s, round trip %.0f ns), then %.2f ns for each line the "
      "caller reads back.",
      hand_over_ns(inputs) / 1000, states[static_cast<unsigned>(inputs.mover)],
      round_trip_ns(inputs), remote_line_ns(inputs));
  const bool in_memory = inputs.request.access == Access::in_memory;
  const double line_ns = inline_line_ns(inputs, inputs.request.length, in_memory);
  say(reasons, "Copying it itself costs the caller %s%.1f us (%.2f ns a line%s).",
      in_memory ? "about " : "at least ", lines * line_ns / 1000, line_ns,
      in_memory ? "" : ", as if all were in the nearest cache it fits");
  if (inputs.request.access == Access::new_pages) {
    say(reasons,
        "The destination has no pages yet: whoever copies makes them first, huge ones where the "
        "copy fills them (HAUL_MEMORY_HUGE).");
  }
  say(reasons, "Figures: %s.",
      inputs.calibration.measured ? "measured on this machine"
                                  : "safe defaults; haul tune measures this machine");
}

}  // namespace haul::plan
