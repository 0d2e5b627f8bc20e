// The service's figures as text, table and JSON.
#include "cli/service/service_report.hpp"

#include <fmt/format.h>
#include <haul/haul.h>

#include "base/knobs.hpp"
#include "cli/kit/table.hpp"
#include "cli/kit/terminal.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using Json = nlohmann::ordered_json;
using service::printable;

void line(const char* name, const std::string& text) {
  fmt::print("{:<9} {}\n", name, text);
}

std::string plural(std::uint64_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

Json client_json(const wire::ClientStats& client) {
  return {{"pid", client.pid},
          {"uid", client.uid},
          {"name", printable(client.name)},
          {"weight", client.weight},
          {"attached_ns", client.attached_ns},
          {"rings", client.rings},
          {"grants", client.grants},
          {"bindings", client.bindings},
          {"reaches_memory", client.reaches_memory != 0},
          {"requests", client.requests},
          {"failed", client.failed},
          {"chunks", client.chunks},
          {"queue_depth", client.queue_depth},
          {"mapped_copy_bytes", client.mapped_copy_bytes},
          {"kernel_copy_bytes", client.kernel_copy_bytes},
          {"busy_ns", client.busy_ns},
          {"mapped_bytes", client.mapped_bytes}};
}

}  // namespace

std::string service_state_name(const wire::Stats& stats) {
  switch (stats.state) {
    case 1: return "awake";
    case 2: return "asleep";
    case 3: return "awake, without the lease of its core";
    default: return "starting";
  }
}

std::string show_duration(std::uint64_t ns) {
  const std::uint64_t s = ns / 1'000'000'000, minute = 60, hour = 60 * minute, day = 24 * hour;
  if (s < minute) return fmt::format("{} s", s);
  if (s < hour) return fmt::format("{} min {} s", s / minute, s % minute);
  if (s < day) return fmt::format("{} h {} min", s / hour, s % hour / minute);
  return fmt::format("{} d {} h", s / day, s % day / hour);
}

std::string show_mapped(const wire::Stats& stats) {
  return fmt::format("{} of {}", tools::show_bytes(stats.mapped_bytes),
                     tools::show_bytes(stats.map_budget_bytes));
}

void print_service_status(const service::Monitor& monitor, const service::Snapshot& all) {
  const wire::Stats& stats = all.stats;
  line("service", fmt::format("haul {}, process {}, {}{}, running for {}", monitor.version(),
                              stats.pid, service_state_name(stats),
                              stats.cpu >= 0 ? fmt::format(" on CPU {}", stats.cpu) : "",
                              show_duration(stats.uptime_ns)));
  line("socket", monitor.socket_path());
  line("clients", fmt::format("{}, {}; {} sent away", stats.clients, plural(stats.grants, "grant"),
                              stats.refusals));
  line("copied", fmt::format("{} in {}, {} of them failed", tools::show_bytes(stats.bytes),
                             plural(stats.requests, "request"), stats.failed));
  line("mapped", fmt::format("{}; {} made, {} given up for room", show_mapped(stats),
                             plural(stats.maps, "mapping"), stats.evictions));
  line("CPU time", tools::show_ns(static_cast<double>(stats.cpu_ns)));
}

void print_service_clients(const service::Snapshot& all) {
  if (all.clients.empty()) {
    fmt::print("no process uses the service now\n");
    return;
  }
  TextTable table({{"pid", Align::right},
                   {"name", Align::left},
                   {"weight", Align::right},
                   {"attached", Align::right},
                   {"requests", Align::right},
                   {"failed", Align::right},
                   {"queued", Align::right},
                   {"by mapping", Align::right},
                   {"by kernel", Align::right},
                   {"time spared", Align::right},
                   {"mapped", Align::right},
                   {"reach", Align::left}});
  for (const wire::ClientStats& client : all.clients) {
    table.add(
        {fmt::format("{}", client.pid), printable(client.name), fmt::format("{}", client.weight),
         show_duration(client.attached_ns), fmt::format("{}", client.requests),
         fmt::format("{}", client.failed), fmt::format("{}", client.queue_depth),
         tools::show_bytes(client.mapped_copy_bytes), tools::show_bytes(client.kernel_copy_bytes),
         tools::show_ns(static_cast<double>(client.busy_ns)),
         tools::show_bytes(client.mapped_bytes), client.reaches_memory != 0 ? "all" : "shared"});
  }
  table.print();
}

Json service_document(const service::Monitor& monitor, const service::Snapshot& all) {
  const wire::Stats& stats = all.stats;
  Json document{{"version", monitor.version()},
                {"pid", stats.pid},
                {"socket", monitor.socket_path()},
                {"state", service_state_name(stats)},
                {"cpu", stats.cpu},
                {"uptime_ns", stats.uptime_ns},
                {"cpu_ns", stats.cpu_ns},
                {"grants", stats.grants},
                {"requests", stats.requests},
                {"failed", stats.failed},
                {"refusals", stats.refusals},
                {"bytes", stats.bytes},
                {"mapped_bytes", stats.mapped_bytes},
                {"map_budget_bytes", stats.map_budget_bytes},
                {"maps", stats.maps},
                {"evictions", stats.evictions},
                {"clients", Json::array()}};
  for (const wire::ClientStats& client : all.clients) {
    document["clients"].push_back(client_json(client));
  }
  return document;
}

ServiceGlance glance_at_service() {
  ServiceGlance glance;
  try {
    service::Monitor monitor;
    const service::Snapshot all = monitor.snapshot();
    glance.running = true;
    glance.socket = monitor.socket_path();
    glance.version = monitor.version();
    glance.pid = monitor.pid();
    glance.clients = all.stats.clients;
    glance.status = fmt::format("runs: haul {}, process {}, {}, {}", glance.version, glance.pid,
                                service_state_name(all.stats), plural(glance.clients, "client"));
    if (!monitor.pid_is_ours()) {
      glance.status +=
          "; it is seen by no such number here, so it lives in another pid namespace, and only "
          "memory of haul_alloc() or haul_share() may be within its reach";
    }
    // demo and bench attach as other programs do; the kernel says this about this one process only.
    if (!monitor.why_not().empty()) glance.status += "; " + monitor.why_not();
    if (knob_number(Knob::service_use) == 1) {
      glance.status += "; HAUL_SERVICE_USE=off keeps this process from using it";
    }
  } catch (const std::exception& trouble) {
    glance.status = trouble.what();
  }
  return glance;
}

Json glance_document(const ServiceGlance& glance) {
  Json document{{"running", glance.running}, {"status", glance.status}};
  if (glance.running) {
    document["socket"] = glance.socket;
    document["version"] = glance.version;
    document["pid"] = glance.pid;
    document["clients"] = glance.clients;
  }
  return document;
}

}  // namespace haul::cli
