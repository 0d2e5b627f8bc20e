// Errors in words, plans, engines, counters, and the life of the movers.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "api/convert.hpp"
#include "api/startup.hpp"
#include "client/link.hpp"
#include "client/link_socket.hpp"
#include "completion/ledger.hpp"
#include "engine/registry.hpp"
#include "execution/counters.hpp"
#include "gate/gate.hpp"
#include "mover/cores/lease.hpp"
#include "mover/mover.hpp"
#include "mover/submit.hpp"
#include "plan/thresholds.hpp"
#include "tune/background.hpp"
#include "tune/files.hpp"

namespace haul::api {
namespace {

#define HAUL_TEXT_(x) #x
#define HAUL_TEXT(x) HAUL_TEXT_(x)
constexpr char version[] = HAUL_TEXT(HAUL_VERSION_MAJOR) "." HAUL_TEXT(
    HAUL_VERSION_MINOR) "." HAUL_TEXT(HAUL_VERSION_PATCH);

template <std::size_t size>
void put(char (&to)[size], const char* text) noexcept {
  std::snprintf(to, size, "%.*s", static_cast<int>(size - 1), text);
}

// 0.1's sizes: the structs may grow, and programs built for 0.1 go on passing these.
template <class T>
inline constexpr std::size_t first_size = 0;
template <>
inline constexpr std::size_t first_size<haul_plan> = 1616;
template <>
inline constexpr std::size_t first_size<haul_engine_info> = 296;
template <>
inline constexpr std::size_t first_size<haul_state> = 480;

// A struct the caller sized: NULL, or one shorter than 0.1's, is refused.
template <class T>
Code check_out(const T* out, const char* name, Error* error) noexcept {
  static_assert(first_size<T> != 0 && sizeof(T) >= first_size<T>);
  if (out != nullptr && out->size >= first_size<T>) return Code::ok;
  *error =
      make_error(Code::invalid, 0,
                 "%s is NULL or its size is not set; pass one with size = sizeof(%s).", name, name);
  return Code::invalid;
}

// Hands over what the caller has room for; its `size` stays as the caller set it.
template <class T>
void deliver(T* out, T figures) noexcept {
  figures.size = out->size;
  std::memcpy(out, &figures, std::min<std::size_t>(out->size, sizeof figures));
}

// What haul's own threads are waiting for is a reason too: because of it the figures are still the
// defaults.
void add_stalls(haul_plan* plan) noexcept {
  constexpr std::uint32_t room = sizeof plan->reasons / sizeof plan->reasons[0];
  char sentence[sizeof plan->reasons[0]];
  tune::describe_stall(sentence, sizeof sentence);
  if (sentence[0] != '\0' && plan->reason_count < room)
    put(plan->reasons[plan->reason_count++], sentence);
}

void describe_mover(plan::MoverState state, int cpu, haul_state* out) noexcept {
  char text[sizeof out->mover_status];
  switch (state) {
    case plan::MoverState::none:
      std::snprintf(text, sizeof text,
                    "No mover yet; the first large copy, or haul_wake(), starts it.");
      break;
    case plan::MoverState::awake:
      std::snprintf(text, sizeof text, "Awake on CPU %d, which this process leases.", cpu);
      break;
    case plan::MoverState::asleep:
      std::snprintf(text, sizeof text, "Asleep; a large copy or haul_wake() wakes it.");
      break;
    case plan::MoverState::denied:
      std::snprintf(text, sizeof text, "%s; copies are inline meanwhile (asked again every 50 ms).",
                    lease_refusal() == Code::again
                        ? "Another process leases the node's mover core"
                        : "The lease's socket cannot be made: raise ulimit -n, or allow AF_UNIX");
      break;
    case plan::MoverState::impossible:
      std::snprintf(text, sizeof text,
                    "No mover can run here (one CPU, HAUL_MOVER_CORES=0, or no thread can be "
                    "made); copies are inline.");
      break;
  }
  put(out->mover_status, text);
}

}  // namespace

extern "C" HAUL_API const char* haul_strerror(int code) {
  return describe(static_cast<Code>(code));
}

extern "C" HAUL_API const char* haul_last_error(void) {
  return last_error_sentence();
}

extern "C" HAUL_API const char* haul_version(void) {
  return version;
}

extern "C" HAUL_API int haul_explain(const haul_request* request, haul_plan* plan) {
  Error error;
  if (request == nullptr)
    return fail(make_error(Code::invalid, 0, "request is NULL; pass the request to be explained."));
  if (check_out(plan, "haul_plan", &error) != Code::ok) return fail(error);
  Request converted;
  haul_request room;
  const haul_request* usable = nullptr;
  if (fit(*request, &room, &usable, &error) != Code::ok ||
      convert(*usable, &converted, &error) != Code::ok) {
    return fail(error);
  }
  Explanation explanation;
  explain(converted, &explanation);
  const plan::Plan& decided = explanation.plan;
  haul_plan told{};
  told.chunks = decided.chunks.count();
  told.chunk_bytes =
      decided.chunks.end(decided.chunks.taper) - decided.chunks.begin(decided.chunks.taper);
  const plan::Thresholds thresholds =
      plan::thresholds_for(explanation.inputs, plan::dedicated_for(explanation.inputs));
  told.inline_below_bytes = thresholds.inline_below;
  told.mover_from_bytes = thresholds.mover_from;
  put(told.scheme, scheme_of(decided, explanation.inputs));
  put(told.mover, name_of(decided.mover));
  put(told.engine, decided.engine >= 0
                       ? engine_at(static_cast<std::size_t>(decided.engine)).facts().name
                       : "none");
  told.reason_count = explanation.reasons.count;
  for (unsigned i = 0; i < explanation.reasons.count; ++i)
    put(told.reasons[i], explanation.reasons.text[i]);
  add_stalls(&told);
  deliver(plan, told);
  return 0;
}

extern "C" HAUL_API int haul_engine(unsigned index, haul_engine_info* info) {
  Error error;
  if (check_out(info, "haul_engine_info", &error) != Code::ok) return fail(error);
  if (index >= engine_count()) {
    return fail(make_error(Code::invalid, 0, "There are %zu engines; ask for 0 to %zu.",
                           engine_count(), engine_count() - 1));
  }
  const Engine& engine = engine_at(index);
  const EngineStatus status = engine.status();
  const EngineCounters moved = engine_counters(index);
  haul_engine_info told{};
  told.available = status.available ? 1 : 0;
  put(told.name, engine.facts().name);
  put(told.spaces, engine.spaces_text());
  put(told.status, status.sentence);
  told.chunks = moved.chunks;
  told.bytes = moved.bytes;
  deliver(info, told);
  return 0;
}

extern "C" HAUL_API int haul_query(haul_state* state) {
  Error error;
  if (check_out(state, "haul_state", &error) != Code::ok) return fail(error);
  haul_state told{};
  const plan::MoverState mover = gate.state.load(std::memory_order_relaxed);
  told.mover_state = static_cast<std::uint32_t>(mover);
  told.mover_cpu = mover_cpu();
  const std::uint32_t count = ring_table.count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Ring& ring = ring_table.ring(i);
    if (ring.owned.load(std::memory_order_relaxed)) ++told.threads;
    told.dedicated += ring.next_seq() - Ring::first_seq;
    told.inlined += ring.inlined.load(std::memory_order_relaxed);
  }
  told.submitted = told.dedicated + told.inlined;
  told.helped_chunks = counters.helped_chunks.load(std::memory_order_relaxed);
  told.moved_chunks = counters.moved_chunks.load(std::memory_order_relaxed);
  told.failed = counters.failed.load(std::memory_order_relaxed);
  told.unobserved = ledger_unobserved();
  told.round_trip_ns = static_cast<std::uint64_t>(round_trip_now());
  describe_mover(mover, told.mover_cpu, &told);
  ServiceStatus service;
  service_status(&service);
  told.service_state = static_cast<std::uint32_t>(service.state);
  told.service_pid = service.pid;
  told.service_chunks = service.chunks;
  put(told.service_status, service.sentence);
  deliver(state, told);
  return 0;
}

extern "C" HAUL_API int haul_wake(void) {
  start_up();
  Error error;
  if (gate.closed.load(std::memory_order_relaxed)) {
    return fail(
        make_error(Code::closed, 0, "haul_shutdown() was called; there are no movers after it."));
  }
  // The ring first: making it registers the fork and exit handlers that a mover thread needs.
  if (ring_for_submit(&error) == nullptr) return fail(error);
  if (look_for_service(wake_patience_ns)) {
    wake_service();
    return 0;
  }
  return wake_mover(&error) == Code::ok ? 0 : fail(error);
}

extern "C" HAUL_API int haul_tune(void (*progress)(int percent, void* context), void* context) {
  start_up();
  Error error;
  return tune::calibrate_now(progress, context, &error) == Code::ok ? 0 : fail(error);
}

extern "C" HAUL_API int haul_shutdown(void) {
  shut_down();
  return 0;
}

}  // namespace haul::api
