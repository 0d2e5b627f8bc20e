#include "cli/mpi/fabric_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cli/kit/table.hpp"
#include "cli/kit/terminal.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using tools::show_bytes;
using Json = nlohmann::ordered_json;

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
std::string percent(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

// The smallest size of a bucket: 0, 1, 2, 4, 8, ...
std::uint64_t bucket_from(std::size_t bucket) {
  return bucket == 0 ? 0 : std::uint64_t{1} << (bucket - 1);
}

// The classes of paper 000's Table I: below 32 KiB, below 1 MiB, below 64 MiB, and above.
struct SizeClass {
  const char* title;
  std::uint64_t from;
};
constexpr SizeClass table_classes[] = {{"0 - 32 KiB", 0},
                                       {"32 KiB - 1 MiB", std::uint64_t{32} << 10},
                                       {"1 MiB - 64 MiB", std::uint64_t{1} << 20},
                                       {"64 MiB and more", std::uint64_t{64} << 20}};

std::vector<double> table_shares(const Traffic& traffic) {
  std::vector<double> shares(std::size(table_classes));
  const std::uint64_t all =
      std::accumulate(traffic.sizes.begin(), traffic.sizes.end(), std::uint64_t{0});
  for (std::size_t bucket = 0; bucket < traffic.sizes.size(); ++bucket) {
    std::size_t row = std::size(table_classes) - 1;
    while (bucket_from(bucket) < table_classes[row].from) --row;
    shares[row] += share_of(traffic.sizes[bucket], all);
  }
  return shares;
}

Traffic traffic_of(const std::vector<EndpointReport>& reports) {
  Traffic traffic;
  for (const EndpointReport& report : reports) traffic.add(report.reply);
  return traffic;
}

std::size_t incomplete(const std::vector<EndpointReport>& reports) {
  return static_cast<std::size_t>(
      std::count_if(reports.begin(), reports.end(),
                    [](const EndpointReport& report) { return !report.complete; }));
}

void print_table(std::FILE* stream, const TextTable& table) {
  for (const std::string& line : table.lines()) fmt::print(stream, "  {}\n", line);
}

void print_sizes(std::FILE* stream, const Traffic& traffic) {
  TextTable classes({{"message size", Align::left}, {"messages", Align::right}});
  const std::vector<double> shares = table_shares(traffic);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    classes.add({table_classes[i].title, percent(shares[i])});
  }
  print_table(stream, classes);
  const std::uint64_t all = traffic.all_messages();
  TextTable sizes({{"from", Align::right}, {"messages", Align::right}, {"share", Align::right}});
  for (std::size_t bucket = 0; bucket < traffic.sizes.size(); ++bucket) {
    if (traffic.sizes[bucket] == 0) continue;
    sizes.add({show_bytes(bucket_from(bucket)), fmt::format("{}", traffic.sizes[bucket]),
               percent(share_of(traffic.sizes[bucket], all))});
  }
  fmt::print(stream, "\n");
  print_table(stream, sizes);
}

void print_paths(std::FILE* stream, const Traffic& traffic) {
  TextTable paths({{"path", Align::left},
                   {"messages", Align::right},
                   {"share", Align::right},
                   {"bytes", Align::right},
                   {"share", Align::right}});
  for (std::size_t i = 0; i < fabric::path_count; ++i) {
    if (traffic.messages[i] == 0) continue;
    paths.add({fabric::path_names[i], fmt::format("{}", traffic.messages[i]),
               percent(share_of(traffic.messages[i], traffic.all_messages())),
               show_bytes(traffic.bytes[i]),
               percent(share_of(traffic.bytes[i], traffic.all_bytes()))});
  }
  print_table(stream, paths);
}

// Pairs of processes that can do the same for each other.
struct PairGroup {
  PairAbilities abilities;
  std::vector<std::string> pairs;  // "4101-4102"
};

std::string peer_name(std::int32_t pid) {
  return pid > 0 ? fmt::format("{}", pid) : "another node's";
}

std::vector<PairGroup> group_pairs(const std::vector<fabric::MonitorReply>& replies) {
  std::vector<PairGroup> groups;
  for (const fabric::MonitorReply& reply : replies) {
    for (std::uint32_t i = 0; i < reply.peer_count; ++i) {
      const auto& peer = reply.peer[i];
      const PairAbilities abilities = PairAbilities::of(peer);
      auto group = std::find_if(groups.begin(), groups.end(),
                                [&](const PairGroup& one) { return one.abilities == abilities; });
      if (group == groups.end()) group = groups.insert(group, PairGroup{abilities, {}});
      // Both sides report the pair; it is listed once where they agree.
      const bool seen = peer.pid > 0 && reply.pid > peer.pid;
      const std::string name = seen ? fmt::format("{}-{}", peer_name(peer.pid), reply.pid)
                                    : fmt::format("{}-{}", reply.pid, peer_name(peer.pid));
      if (std::find(group->pairs.begin(), group->pairs.end(), name) == group->pairs.end()) {
        group->pairs.push_back(name);
      }
    }
  }
  return groups;
}

}  // namespace

void print_traffic(std::FILE* stream, const std::vector<EndpointReport>& reports) {
  const Traffic traffic = traffic_of(reports);
  fmt::print(stream, "haul: {} endpoint{} sent {} messages, {}\n\n", reports.size(),
             reports.size() == 1 ? "" : "s", traffic.all_messages(),
             show_bytes(traffic.all_bytes()));
  if (traffic.all_messages() > 0) {
    print_sizes(stream, traffic);
    fmt::print(stream, "\n");
    print_paths(stream, traffic);
    fmt::print(stream, "\n");
  }
  fmt::print(stream, "  received {} messages, {}; RMA operations {}, atomic operations {}\n",
             traffic.received_messages, show_bytes(traffic.received_bytes), traffic.rma_operations,
             traffic.atomic_operations);
  fmt::print(stream, "  transfers on a slower path than planned: {}\n", traffic.fallbacks);
  if (const std::size_t count = incomplete(reports); count > 0) {
    fmt::print(stream,
               "  {} of the endpoints ended without a last word (killed, or ended without "
               "MPI_Finalize): what they did in their last second is not counted\n",
               count);
  }
  if (const auto count = std::ranges::count_if(reports, &EndpointReport::refused); count > 0) {
    fmt::print(stream,
               "  {} of the endpoints belong to another version of haul, and were not understood: "
               "install one version everywhere\n",
               count);
  }
}

Json traffic_document(const std::vector<EndpointReport>& reports) {
  const Traffic traffic = traffic_of(reports);
  Json all;
  all["endpoints"] = reports.size();
  all["incomplete_endpoints"] = incomplete(reports);
  all["messages"] = traffic.all_messages();
  all["bytes"] = traffic.all_bytes();
  all["received_messages"] = traffic.received_messages;
  all["received_bytes"] = traffic.received_bytes;
  all["fallbacks"] = traffic.fallbacks;
  all["rma_operations"] = traffic.rma_operations;
  all["atomic_operations"] = traffic.atomic_operations;
  all["size_classes"] = Json::array();
  const std::vector<double> shares = table_shares(traffic);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    all["size_classes"].push_back({{"from_bytes", table_classes[i].from}, {"share", shares[i]}});
  }
  all["sizes"] = Json::array();
  for (std::size_t bucket = 0; bucket < traffic.sizes.size(); ++bucket) {
    if (traffic.sizes[bucket] == 0) continue;
    all["sizes"].push_back(
        {{"from_bytes", bucket_from(bucket)}, {"messages", traffic.sizes[bucket]}});
  }
  all["paths"] = Json::array();
  for (std::size_t i = 0; i < fabric::path_count; ++i) {
    all["paths"].push_back({{"path", fabric::path_names[i]},
                            {"messages", traffic.messages[i]},
                            {"bytes", traffic.bytes[i]}});
  }
  return all;
}

void print_pairs(std::FILE* stream, const std::vector<fabric::MonitorReply>& replies) {
  constexpr std::size_t most_named = 8;
  for (const PairGroup& group : group_pairs(replies)) {
    std::vector<std::string> named = group.pairs;
    if (named.size() > most_named) named.resize(most_named);
    const std::size_t rest = group.pairs.size() - named.size();
    fmt::print(stream, "{}\n",
               bold(fmt::format("Processes {}{}: {}", fmt::join(named, ", "),
                                rest == 0 ? "" : fmt::format(" and {} pairs more", rest),
                                ability_names(group.abilities))));
    print_path_rows(stream, group.abilities);
    fmt::print(stream, "\n");
  }
}

void print_path_rows(std::FILE* stream, const PairAbilities& abilities) {
  TextTable table({{"size", Align::left}, {"memory", Align::left}, {"path", Align::left}});
  const std::vector<PathRow> rows = paths_with(abilities);
  for (const PathRow& row : rows) table.add({row.sizes, row.memory, row.path});
  const std::vector<std::string> lines = table.lines();
  std::size_t wide = 0;
  for (const std::string& line : lines) wide = std::max(wide, line.size());
  const std::size_t indent = wide + 4;  // reasons stand to the right of the table, wrapped
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string why = i == 0 ? "why" : i == 1 ? "---" : rows[i - 2].why;
    fmt::print(stream, "  {:<{}}{}", lines[i], indent - 2, wrapped(why, indent).substr(indent));
  }
  if (!abilities.why.empty()) fmt::print(stream, "{}", wrapped("missing: " + abilities.why, 2));
}

Json pairs_document(const std::vector<fabric::MonitorReply>& replies) {
  Json all = Json::array();
  for (const fabric::MonitorReply& reply : replies) {
    for (std::uint32_t i = 0; i < reply.peer_count; ++i) {
      const PairAbilities abilities = PairAbilities::of(reply.peer[i]);
      all.push_back({{"pid", reply.pid},
                     {"peer_pid", reply.peer[i].pid},
                     {"ring", abilities.ring},
                     {"mapped", abilities.mapped},
                     {"cma", abilities.cma},
                     {"offnode", abilities.offnode},
                     {"why", abilities.why}});
    }
  }
  return all;
}

}  // namespace haul::cli
