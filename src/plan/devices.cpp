#include "plan/devices.hpp"

#include <algorithm>

#include "base/machine/pages.hpp"
#include "plan/plan.hpp"
#include "plan/reasons.hpp"
#include "plan/thresholds.hpp"

namespace haul::plan {
namespace {

constexpr auto bytes_of_page = static_cast<double>(os::page_bytes);

// A waiting caller may lose a twentieth, as with a dedicated core (thresholds.cpp).
constexpr double tolerable = 1.05;

bool is_candidate(const EngineView& engine) noexcept {
  return engine.available && engine.device && !engine.facts.emulated &&
         engine.facts.bytes_per_ns > 0;
}

// Until the device has moved the bytes, what it has to do already included. Of memory that must be
// registered and is not, the first page delays the copy; the others are registered beside it.
double device_ns(const EngineView& engine, std::size_t length) noexcept {
  const auto bytes = static_cast<double>(length);
  const auto queued = static_cast<double>(engine.queued_bytes);
  const double moving_ns = (queued + bytes) / engine.facts.bytes_per_ns;
  const double pinning_ns =
      engine.cached ? 0 : 2 * bytes / bytes_of_page * engine.facts.pin_page_ns;
  return engine.facts.startup_ns + std::max(moving_ns, pinning_ns);
}

// What the CPU of the caller takes for the copy. A side that is to stay out of the caches costs it
// what memory costs, wherever the bytes lie.
double cpu_ns(const Inputs& inputs, std::size_t length, bool in_memory) noexcept {
  const RequestFacts& request = inputs.request;
  const bool past_caches = request.dst_affinity == Affinity::non_cacheable ||
                           request.src_affinity == Affinity::non_cacheable;
  const double line_ns = inline_line_ns(inputs, length, in_memory || past_caches);
  return static_cast<double>(counted_bytes(request.operation, length)) / 64 * line_ns;
}

// What the caller pays although a device moves the bytes: the submit, registering, and reading the
// bytes from further away than where its own copy would have left them.
double callers_ns(const Inputs& inputs, const EngineView& engine, std::size_t length) noexcept {
  const double lines = static_cast<double>(length) / 64;
  const bool reads_soon = inputs.request.dst_affinity == Affinity::cacheable;
  const bool would_be_near = length <= inputs.l2_bytes / 2;
  const double reading_ns = reads_soon && would_be_near ? lines * inputs.calibration.l3_line_ns : 0;
  const double pinning_ns =
      engine.cached ? 0 : 2 * lines * 64 / bytes_of_page * engine.facts.pin_page_ns;
  return inputs.calibration.submit_ns + reading_ns + pinning_ns;
}

bool pays(const Inputs& inputs, const EngineView& engine, std::size_t length,
          bool in_memory) noexcept {
  const double inline_ns = cpu_ns(inputs, length, in_memory);
  return callers_ns(inputs, engine, length) < inline_ns &&
         device_ns(engine, length) <= inline_ns * tolerable;
}

// Why no device does this request, whatever the figures; nullptr: one may.
const char* hindrance(const Inputs& inputs, Mover mover) noexcept {
  const RequestFacts& request = inputs.request;
  if (request.overlapping) return "the sides overlap";
  if (request.checked) return "a checked request's bytes must be looked at by the CPU";
  if (request.access == Access::new_pages)
    return "the destination has no pages yet, which the CPU makes";
  if (mover == Mover::service) return "the node's service does it";
  return nullptr;
}

}  // namespace

int choose_device(const Inputs& inputs, Mover mover, Reasons* reasons) noexcept {
  const RequestFacts& request = inputs.request;
  const bool in_memory = request.access == Access::in_memory;
  const double inline_ns = cpu_ns(inputs, request.length, in_memory);
  const double core_ns = mover == Mover::thread ? hand_over_ns(inputs) + inline_ns : inline_ns;
  const char* const hindered = hindrance(inputs, mover);
  int best = -1;
  double best_ns = 0;
  for (std::size_t i = 0; i < inputs.engine_count; ++i) {
    const EngineView& engine = inputs.engines[i];
    if (engine.available && engine.device && engine.reaches && engine.facts.emulated)
      say(reasons, "Not %s: it is no hardware; HAUL_PLAN_ENGINE=%s takes it.", engine.name,
          engine.name);
    if (!is_candidate(engine) || !engine.reaches) continue;
    const double ns = device_ns(engine, request.length);
    if (hindered != nullptr) {
      say(reasons, "Not %s: %s.", engine.name, hindered);
    } else if (!pays(inputs, engine, request.length, in_memory) ||
               ns > core_ns * (mover == Mover::thread ? 1.0 : tolerable)) {
      say(reasons,
          "Not %s: it takes about %.1f us (%.1f to start, %.1f bytes/ns, %llu bytes before), and "
          "the CPU %.1f.",
          engine.name, ns / 1000, engine.facts.startup_ns / 1000, engine.facts.bytes_per_ns,
          static_cast<unsigned long long>(engine.queued_bytes), core_ns / 1000);
    } else if (best < 0 || ns < best_ns) {
      best = static_cast<int>(i);
      best_ns = ns;
    }
  }
  if (best >= 0) {
    const EngineView& engine = inputs.engines[best];
    say(reasons,
        "Engine %s: it takes about %.1f us (%.1f to start, %.1f bytes/ns, %llu bytes before%s), "
        "and the CPU %.1f.",
        engine.name, best_ns / 1000, engine.facts.startup_ns / 1000, engine.facts.bytes_per_ns,
        static_cast<unsigned long long>(engine.queued_bytes),
        engine.facts.pin_page_ns == 0 ? ""
        : engine.cached               ? "; the memory is registered"
                                      : "; the memory must be registered",
        core_ns / 1000);
  }
  return best;
}

std::uint64_t device_from_bytes(const Inputs& inputs) noexcept {
  std::uint64_t from = UINT64_MAX;
  Inputs plain = inputs;
  plain.request = RequestFacts{};
  // (Of a request that says that nobody reads the bytes soon, the threshold is the lowest.)
  plain.request.dst_affinity = Affinity::non_cacheable;
  for (std::size_t i = 0; i < inputs.engine_count; ++i) {
    EngineView engine = inputs.engines[i];
    if (!is_candidate(engine)) continue;
    engine.queued_bytes = 0;
    engine.cached = true;
    for (unsigned log2 = 12; log2 <= 30; ++log2) {
      const std::uint64_t length = std::uint64_t{1} << log2;
      if (length >= from) break;
      if (pays(plain, engine, length, true)) from = length;
    }
  }
  return from;
}

}  // namespace haul::plan
