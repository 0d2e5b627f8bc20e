#include "cli/service/service_metrics.hpp"

#include <map>

namespace haul::cli {
namespace {

using wire::ClientStats;

enum class MetricKind { counter, gauge, counter_ns };

struct ClientFigure {
  const char *name, *help;
  MetricKind kind;
  std::uint64_t (*value)(const ClientStats& client);
};

constexpr ClientFigure client_figures[] = {
    {"requests_total", "Requests of the process that have ended.", MetricKind::counter,
     [](const ClientStats& one) -> std::uint64_t { return one.requests; }},
    {"failed_requests_total", "Requests of the process that have failed.", MetricKind::counter,
     [](const ClientStats& one) -> std::uint64_t { return one.failed; }},
    {"chunks_total", "Chunks that the service has moved for the process.", MetricKind::counter,
     [](const ClientStats& one) -> std::uint64_t { return one.chunks; }},
    {"busy_seconds_total", "Time for which the service has moved the process's bytes.",
     MetricKind::counter_ns, [](const ClientStats& one) -> std::uint64_t { return one.busy_ns; }},
    {"queued_requests", "Requests of the process that wait or are under way.", MetricKind::gauge,
     [](const ClientStats& one) -> std::uint64_t { return one.queue_depth; }},
    {"mapped_bytes", "Memory of the process that the service keeps mapped.", MetricKind::gauge,
     [](const ClientStats& one) -> std::uint64_t { return one.mapped_bytes; }},
    {"rings", "Rings that the process shares with the service.", MetricKind::gauge,
     [](const ClientStats& one) -> std::uint64_t { return one.rings; }},
    {"grants", "Ranges of its memory that the process has shared with others.", MetricKind::gauge,
     [](const ClientStats& one) -> std::uint64_t { return one.grants; }},
    {"bindings", "Grants of others that the process has opened.", MetricKind::gauge,
     [](const ClientStats& one) -> std::uint64_t { return one.bindings; }},
    {"weight", "Share of the process while others want the service too.", MetricKind::gauge,
     [](const ClientStats& one) -> std::uint64_t { return one.weight; }},
    {"reached_connections", "Connections whose private memory the kernel lets the service reach.",
     MetricKind::gauge,
     [](const ClientStats& one) -> std::uint64_t { return one.reaches_memory != 0 ? 1 : 0; }},
};

using Sharers = std::map<std::pair<std::int32_t, std::string>, std::vector<const ClientStats*>>;

std::uint64_t sum_of(const std::vector<const ClientStats*>& connections,
                     std::uint64_t (*value)(const ClientStats&)) {
  std::uint64_t sum = 0;
  for (const ClientStats* one : connections) sum += value(*one);
  return sum;
}

void add_clients(Exposition* page, const std::vector<ClientStats>& clients) {
  Sharers processes;
  for (const ClientStats& one : clients)
    processes[{one.pid, service::printable(one.name)}].push_back(&one);
  const auto labels_of = [](const Sharers::value_type& process) {
    return Exposition::Labels{{"pid", std::to_string(process.first.first)},
                              {"name", process.first.second}};
  };
  page->counter("haul_service_client_copied_bytes_total",
                "Bytes moved for the process, through mappings of its memory or by the kernel.");
  for (const auto& process : processes) {
    Exposition::Labels labels = labels_of(process);
    labels.emplace_back("way", "mapping");
    page->sample(
        sum_of(process.second, [](const ClientStats& one) { return one.mapped_copy_bytes; }),
        labels);
    labels.back().second = "kernel";
    page->sample(
        sum_of(process.second, [](const ClientStats& one) { return one.kernel_copy_bytes; }),
        labels);
  }
  for (const ClientFigure& figure : client_figures) {
    const std::string name = std::string("haul_service_client_") + figure.name;
    if (figure.kind == MetricKind::gauge) {
      page->gauge(name, figure.help);
    } else {
      page->counter(name, figure.help);
    }
    for (const auto& process : processes) {
      const std::uint64_t value = sum_of(process.second, figure.value);
      if (figure.kind == MetricKind::counter_ns) {
        page->sample_seconds(value, labels_of(process));
      } else {
        page->sample(value, labels_of(process));
      }
    }
  }
}

void add_service_up(Exposition* page, bool up) {
  page->gauge("haul_service_up", "Whether the service answers.");
  page->sample(up ? 1 : 0);
}

}  // namespace

void add_absent_service(Exposition* page) {
  add_service_up(page, false);
}

void add_service_metrics(Exposition* page, const std::string& version,
                         const service::Snapshot& all) {
  const wire::Stats& stats = all.stats;
  add_service_up(page, true);
  page->gauge("haul_build_info", "The service's version.");
  page->sample(1, {{"version", version}});
  page->gauge("haul_service_uptime_seconds", "Time since the service was started.");
  page->sample_seconds(stats.uptime_ns);
  page->gauge("haul_service_state", "1 for what the service does now, 0 for the others.");
  constexpr const char* states[] = {"starting", "awake", "asleep", "awake_without_lease"};
  for (std::uint32_t i = 0; i < std::size(states); ++i)
    page->sample(stats.state == i ? 1 : 0, {{"state", states[i]}});
  page->gauge("haul_service_cpu", "Number of the CPU that the service holds, -1 while it sleeps.");
  page->sample_signed(stats.cpu);
  page->counter("haul_service_cpu_seconds_total", "CPU time of the service's mover.");
  page->sample_seconds(stats.cpu_ns);
  page->gauge("haul_service_clients", "Connections of processes that use the service.");
  page->sample(stats.clients);
  page->gauge("haul_service_grants", "Ranges of memory that processes have shared with others.");
  page->sample(stats.grants);
  page->counter("haul_service_requests_total", "Requests that have ended.");
  page->sample(stats.requests);
  page->counter("haul_service_failed_requests_total", "Requests that have failed.");
  page->sample(stats.failed);
  page->counter("haul_service_refusals_total", "Processes sent away, and clients dropped.");
  page->sample(stats.refusals);
  page->counter("haul_service_copied_bytes_total", "Bytes moved for all processes.");
  page->sample(stats.bytes);
  page->gauge("haul_service_mapped_bytes", "Memory of clients that the service keeps mapped.");
  page->sample(stats.mapped_bytes);
  page->gauge("haul_service_map_budget_bytes", "How much it may keep mapped.");
  page->sample(stats.map_budget_bytes);
  page->counter("haul_service_mappings_total", "Mappings made.");
  page->sample(stats.maps);
  page->counter("haul_service_mapping_evictions_total", "Mappings given up for room.");
  page->sample(stats.evictions);
  add_clients(page, all.clients);
}

}  // namespace haul::cli
