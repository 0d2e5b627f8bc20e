#include "cli/mpi/fabric_metrics.hpp"

#include <map>

#include "cli/mpi/fabric_monitor.hpp"

namespace haul::cli {
namespace {

struct TrafficFigure {
  const char *name, *help;
  bool counter;
  std::uint64_t Traffic::*value;
};

constexpr TrafficFigure traffic_figures[] = {
    {"haul_fabric_received_messages_total", "Messages received.", true,
     &Traffic::received_messages},
    {"haul_fabric_received_bytes_total", "Bytes of messages received.", true,
     &Traffic::received_bytes},
    {"haul_fabric_unexpected_messages_total", "Messages that came before they were asked for.",
     true, &Traffic::unexpected_messages},
    {"haul_fabric_unexpected_bytes_total", "Bytes that came before they were asked for.", true,
     &Traffic::unexpected_bytes},
    {"haul_fabric_fallbacks_total", "Transfers that took a slower path than planned.", true,
     &Traffic::fallbacks},
    {"haul_fabric_rma_operations_total", "Remote reads and writes.", true,
     &Traffic::rma_operations},
    {"haul_fabric_atomic_operations_total", "Remote atomic operations.", true,
     &Traffic::atomic_operations},
    {"haul_fabric_copies_in_flight", "Copies under way.", false, &Traffic::copies_in_flight},
    {"haul_fabric_peers", "Processes that the process sends to or receives from.", false,
     &Traffic::peers},
};

using Senders = std::map<pid_t, Traffic>;

void add_paths(Exposition* page, const Senders& senders, const char* name, const char* help,
               const std::array<std::uint64_t, fabric::path_count> Traffic::*value) {
  page->counter(name, help);
  for (const auto& [pid, traffic] : senders) {
    for (std::size_t i = 0; i < fabric::path_count; ++i) {
      page->sample((traffic.*value)[i], {{"pid", std::to_string(pid)},
                                         {"name", process_name(pid)},
                                         {"path", fabric::path_names[i]}});
    }
  }
}

}  // namespace

void add_fabric_metrics(Exposition* page) {
  std::vector<std::string> silent;
  Senders senders;
  for (const EndpointLook& look : look_at_endpoints(&silent))
    senders[look.pid != 0 ? look.pid : look.reply.pid].add(look.reply);
  page->gauge("haul_fabric_processes", "Processes that send messages by haul.");
  page->sample(senders.size());
  page->gauge("haul_fabric_silent_endpoints", "Endpoints that do not answer.");
  page->sample(silent.size());
  add_paths(page, senders, "haul_fabric_moved_messages_total",
            "Messages by path, at the process that moved them.", &Traffic::messages);
  add_paths(page, senders, "haul_fabric_moved_bytes_total",
            "Bytes of messages by path, at the process that moved them.", &Traffic::bytes);
  for (const TrafficFigure& figure : traffic_figures) {
    if (figure.counter) {
      page->counter(figure.name, figure.help);
    } else {
      page->gauge(figure.name, figure.help);
    }
    for (const auto& [pid, traffic] : senders) {
      page->sample(traffic.*figure.value,
                   {{"pid", std::to_string(pid)}, {"name", process_name(pid)}});
    }
  }
}

}  // namespace haul::cli
