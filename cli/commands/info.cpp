// haul info: what this machine can do, and why not the rest.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/machine/cpu.hpp"
#include "cli/kit/calibration_files.hpp"
#include "cli/kit/environment.hpp"
#include "cli/kit/machine.hpp"
#include "cli/kit/table.hpp"
#include "cli/kit/terminal.hpp"
#include "cli/kit/tree.hpp"
#include "cli/mpi/mpi_found.hpp"
#include "cli/service/service_report.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string calibration_status() {
  if (calibration_place().empty()) {
    return "nowhere to store it, as neither HOME nor XDG_CACHE_HOME is set; set one, or "
           "HAUL_TUNE_CACHE to a path";
  }
  std::size_t count = 0;
  for (const CalibrationFile& file : calibration_files()) count += file.temporary ? 0 : 1;
  if (count == 0) {
    return "none yet: safe defaults hold until one is made in the background, or by `haul tune`";
  }
  return "stored; it is renewed when the machine contradicts it and after 30 days, or by `haul "
         "tune`; `haul clean` removes it";
}

void print_machine(const Machine& machine) {
  const Topology& topology = *machine.topology;
  print_heading("Machine");
  std::string quota = topology.cpu_quota > 0 && topology.cpu_quota < topology.allowed_count
                          ? fmt::format(" (limited to {:.1f} CPUs' time)", topology.cpu_quota)
                          : "";
  print_field("processor", cpu_brand());
  print_field("CPUs", fmt::format("{} usable by this process, {} online{}", topology.allowed_count,
                                  topology.online_count, quota));
  print_field("caches", fmt::format("L1 {}, L2 {}, L3 {}", tools::show_bytes(topology.l1d_bytes),
                                    tools::show_bytes(topology.l2_bytes),
                                    tools::show_bytes(topology.l3_bytes)));
  print_field("can do", fmt::format("{}", fmt::join(cpu_abilities(), " ")));
  for (const CacheGroup& group : cache_groups(topology)) {
    print_field("shared L3", fmt::format("[{}]  package {}, memory node {}", group.cpus,
                                         group.package, group.node));
  }
}

void print_mover(const haul_state& state) {
  print_heading("Mover");
  print_field("state",
              mover_state_name(state) +
                  (state.mover_cpu >= 0 ? fmt::format(", on CPU {}", state.mover_cpu) : ""));
  if (state.mover_status[0] != '\0') print_field("", state.mover_status);
  if (state.round_trip_ns != 0) {
    print_field("round trip",
                fmt::format("{} from this core to the mover's and back",
                            tools::show_ns(static_cast<double>(state.round_trip_ns))));
  }
}

void print_service(const haul_state& state) {
  print_heading("Service");
  const ServiceGlance glance = glance_at_service();
  print_field("state", glance.status);
  if (!glance.running) return;
  print_field("socket", glance.socket);
  print_field("from here", state.service_status);
}

void print_engines(const Machine& machine) {
  print_heading("Engines");
  for (const haul_engine_info& engine : machine.engines) {
    std::string mark = engine.available != 0 ? good("ready") : bad("absent");
    fmt::print("  {:<13} {}: {}\n", engine.name, mark, engine.spaces);
    // What is ready and has more to say begins with that word and a colon.
    constexpr std::string_view ready = "ready: ";
    const std::string_view status = engine.status;
    if (engine.available == 0) fmt::print("{}", wrapped(engine.status, 16));
    if (status.starts_with(ready))
      fmt::print("{}", wrapped(std::string(status.substr(ready.size())), 16));
  }
}

void print_rest() {
  print_heading("System");
  for (const SystemAbility& ability : system_abilities()) {
    print_field(ability.name, (ability.ready ? "yes: " : "no: ") + ability.status);
  }
  print_heading("Calibration");
  print_field("state", calibration_status());
  for (const CalibrationFile& file : calibration_files()) {
    if (file.temporary) continue;
    print_field("file", file.path.string());
    const auto quality = calibration_quality(file.path);
    print_field("measured", quality ? describe(*quality) : "by another version of haul");
  }
  print_heading("Settings");
  std::vector<SetKnob> knobs = set_knobs();
  std::vector<std::string> unknown = unknown_knobs();
  if (knobs.empty() && unknown.empty())
    print_field("all", "at their defaults; man haul-knobs lists them");
  for (const SetKnob& knob : knobs) {
    fmt::print("  {}={} {}\n", knob.row->variable, knob.text,
               dim(fmt::format("(default '{}')", knob.row->default_text)));
    if (!knob.problem.empty()) fmt::print("{}", wrapped("unusable: " + knob.problem, 16));
  }
  for (const std::string& name : unknown) {
    fmt::print("  {} {}\n", name, bad("is no setting of haul: misspelt?"));
  }
}

Json to_json(const Machine& machine, const std::vector<FoundMpi>& mpis) {
  const Topology& topology = *machine.topology;
  Json all;
  all["version"] = haul_version();
  all["cpu"] = {{"brand", cpu_brand()}, {"abilities", cpu_abilities()}};
  all["caches"] = {{"l1d_bytes", topology.l1d_bytes},
                   {"l2_bytes", topology.l2_bytes},
                   {"l3_bytes", topology.l3_bytes}};
  all["online_cpus"] = topology.online_count;
  all["cpu_quota"] = topology.cpu_quota;
  all["cpus"] = Json::array();
  for (unsigned i = 0; i < topology.allowed_count; ++i) {
    const CpuInfo& cpu = topology.allowed[i];
    all["cpus"].push_back({{"cpu", cpu.cpu},
                           {"core", cpu.core},
                           {"package", cpu.package},
                           {"l3_group", cpu.l3_group},
                           {"node", cpu.node}});
  }
  const haul_state& state = machine.state;
  all["mover"] = {{"state", mover_state_name(state)},
                  {"cpu", state.mover_cpu},
                  {"round_trip_ns", state.round_trip_ns},
                  {"status", state.mover_status}};
  all["service"] = glance_document(glance_at_service());
  all["service"]["this_process"] = state.service_status;
  all["engines"] = Json::array();
  for (const haul_engine_info& engine : machine.engines) {
    all["engines"].push_back({{"name", engine.name},
                              {"available", engine.available != 0},
                              {"spaces", engine.spaces},
                              {"status", engine.status}});
  }
  all["system"] = Json::array();
  for (const SystemAbility& ability : system_abilities()) {
    all["system"].push_back(
        {{"name", ability.name}, {"ready", ability.ready}, {"status", ability.status}});
  }
  all["messages"] = messages_document(mpis);
  all["calibration"] = {
      {"status", calibration_status()}, {"files", Json::array()}, {"measured", Json::array()}};
  for (const CalibrationFile& file : calibration_files()) {
    if (file.temporary) continue;
    all["calibration"]["files"].push_back(file.path.string());
    if (const auto quality = calibration_quality(file.path); quality) {
      all["calibration"]["measured"].push_back({{"file", file.path.string()},
                                                {"measured_at_s", quality->measured_at_s},
                                                {"ran_share", quality->ran_share},
                                                {"stolen_share", quality->stolen_share},
                                                {"spread", quality->spread}});
    }
  }
  all["settings"] = Json::array();
  for (const SetKnob& knob : set_knobs()) {
    all["settings"].push_back({{"variable", knob.row->variable},
                               {"value", knob.text},
                               {"default", knob.row->default_text},
                               {"problem", knob.problem}});
  }
  all["unknown_settings"] = unknown_knobs();
  return all;
}

}  // namespace

void add_info(Tree& tree) {
  CLI::App& app = tree.command(
      "info", "What this machine can do: cores, caches, mover, service, engines, MPIs, settings",
      "Shows the processor and which of its cores share a cache, the mover (the "
      "dedicated core that "
      "copies), the node's service, every engine with its state and, where one is absent, "
      "the remedy, the MPIs that were found and whether each can run on haul (haul run --mpi), the "
      "calibration, and "
      "the settings that differ from their defaults.");
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "Print one JSON document instead");
  app.callback([json] {
    const std::vector<FoundMpi> mpis = find_mpis();  // before the mover's threads
    Machine machine = examine_machine();
    if (*json) {
      fmt::print("{}\n",
                 to_json(machine, mpis).dump(2, ' ', false, Json::error_handler_t::replace));
      return;
    }
    fmt::print("haul {}\n", haul_version());
    print_machine(machine);
    print_mover(machine.state);
    print_service(machine.state);
    print_engines(machine);
    print_messages(mpis);
    print_rest();
  });
}

}  // namespace haul::cli
