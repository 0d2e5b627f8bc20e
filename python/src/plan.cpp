#include "python/src/plan.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <optional>
#include <string>

#include "python/src/errors/failure.hpp"
#include "python/src/errors/without_gil.hpp"

namespace haul_python {
namespace {

nb::tuple reasons(const PlanObject& plan) {
  nb::list sentences;
  for (std::uint32_t i = 0; i < plan.raw.reason_count; ++i)
    sentences.append(nb::str(plan.raw.reasons[i]));
  return nb::tuple(sentences);
}

std::string text(const PlanObject& plan) {
  std::string lines = std::string("scheme ") + plan.raw.scheme + ", mover " + plan.raw.mover +
                      ", engine " + plan.raw.engine + ", " + std::to_string(plan.raw.chunks) +
                      (plan.raw.chunks == 1 ? " chunk" : " chunks");
  for (std::uint32_t i = 0; i < plan.raw.reason_count; ++i)
    lines += std::string("\n  ") + plan.raw.reasons[i];
  return lines;
}

std::optional<std::uint64_t> threshold(std::uint64_t bytes) {
  if (bytes == UINT64_MAX) return std::nullopt;
  return bytes;
}

nb::list engines() {
  nb::list all;
  for (unsigned index = 0;; ++index) {
    haul_engine_info info{};
    info.size = sizeof info;
    if (haul_engine(index, &info) != 0) return all;
    nb::dict engine;
    engine["name"] = info.name;
    engine["available"] = info.available != 0;
    engine["spaces"] = info.spaces;
    engine["status"] = info.status;
    engine["chunks"] = info.chunks;
    engine["bytes"] = info.bytes;
    all.append(engine);
  }
}

nb::dict state() {
  haul_state raw{};
  raw.size = sizeof raw;
  haul::check(haul_query(&raw));
  static constexpr const char* mover_states[] = {"none yet", "awake", "asleep",
                                                 "leased by another process", "impossible"};
  static constexpr const char* service_states[] = {"not attached", "awake", "asleep"};
  nb::dict state;
  state["mover"] = mover_states[std::min<std::uint32_t>(raw.mover_state, 4)];
  state["mover_cpu"] =
      raw.mover_cpu < 0 ? nb::object(nb::none()) : nb::object(nb::int_(raw.mover_cpu));
  state["mover_status"] = raw.mover_status;
  state["threads"] = raw.threads;
  state["submitted"] = raw.submitted;
  state["inlined"] = raw.inlined;
  state["dedicated"] = raw.dedicated;
  state["helped_chunks"] = raw.helped_chunks;
  state["moved_chunks"] = raw.moved_chunks;
  state["failed"] = raw.failed;
  state["round_trip_ns"] = raw.round_trip_ns;
  state["service"] = service_states[std::min<std::uint32_t>(raw.service_state, 2)];
  state["service_pid"] =
      raw.service_pid < 0 ? nb::object(nb::none()) : nb::object(nb::int_(raw.service_pid));
  state["service_chunks"] = raw.service_chunks;
  state["service_status"] = raw.service_status;
  return state;
}

void tune() {
  int result;
  {
    const WithoutGil released;
    result = haul_tune(nullptr, nullptr);
    if (result < 0 && haul_last_error()[0] == '\0') result = HAUL_EIO;
  }
  haul::check(result);
}

}  // namespace

PlanObject plan_of(const haul_request& request) {
  PlanObject plan{};
  plan.raw.size = sizeof plan.raw;
  haul::check(haul_explain(&request, &plan.raw));
  return plan;
}

void define_plan(nb::module_& module) {
  nb::class_<PlanObject>(
      module, "Plan",
      "What haul's planner would do with a request now, and why; made by haul.explain().")
      .def_prop_ro(
          "scheme", [](const PlanObject& plan) { return plan.raw.scheme; },
          "SCNI or MCNI (the CPU of the caller, or of a mover), SCI or MCI (a device driven by "
          "them).")
      .def_prop_ro(
          "mover", [](const PlanObject& plan) { return plan.raw.mover; },
          "caller, thread or service.")
      .def_prop_ro(
          "engine", [](const PlanObject& plan) { return plan.raw.engine; },
          "The engine that moves the bytes, such as cpu; none where no engine can.")
      .def_prop_ro(
          "chunks", [](const PlanObject& plan) { return plan.raw.chunks; },
          "Pieces that the request is cut into.")
      .def_prop_ro(
          "chunk_bytes", [](const PlanObject& plan) { return plan.raw.chunk_bytes; },
          "Bytes of the largest piece.")
      .def_prop_ro(
          "inline_below_bytes",
          [](const PlanObject& plan) { return threshold(plan.raw.inline_below_bytes); },
          "Requests of fewer bytes are the caller's; None: all are.")
      .def_prop_ro(
          "mover_from_bytes",
          [](const PlanObject& plan) { return threshold(plan.raw.mover_from_bytes); },
          "Copies of so many bytes and more are the mover's; None: none are.")
      .def_prop_ro("reasons", &reasons, "One sentence each.")
      .def("__str__", &text)
      .def("__repr__", [](const PlanObject& plan) {
        return std::string("<haul.Plan: ") + plan.raw.scheme + ", mover " + plan.raw.mover +
               ", engine " + plan.raw.engine + ">";
      });
  module.def("engines", &engines,
             "What can move bytes here: a list of dicts with name, available, spaces (what it "
             "reaches, in words), status\n"
             "(\"ready\", or why not and what to do about it), chunks and bytes (moved so far by "
             "this process).");
  module.def("state", &state,
             "This process's movers, its link to the node's service, and counters: a dict. Times "
             "in nanoseconds.");
  module.def(
      "wake", [] { haul::check(haul_wake()); },
      "Wakes or starts the mover ahead of a burst of copies. Raises haul.Error where there can be "
      "none.");
  module.def("tune", &tune,
             "Measures this machine (a fraction of a second, without the GIL) and stores the "
             "figures for later processes.");
}

}  // namespace haul_python
