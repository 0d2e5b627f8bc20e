#include "cli/mpi/report/fabric_large.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "cli/kit/table.hpp"
#include "cli/kit/terminal.hpp"
#include "cli/mpi/report/fabric_buffers.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

using tools::show_bytes;
using tools::show_ns;
using Json = nlohmann::ordered_json;

constexpr std::size_t shown_buffers = 8, shown_ranks = 4;

std::vector<const fabric::MonitorReply*> replies_of(const std::vector<EndpointReport>& reports) {
  std::vector<const fabric::MonitorReply*> replies;
  replies.reserve(reports.size());
  for (const EndpointReport& report : reports) replies.push_back(&report.reply);
  return replies;
}

void print_indented(std::FILE* stream, const TextTable& table) {
  for (const std::string& line : table.lines()) fmt::print(stream, "  {}\n", line);
}

std::string class_name(std::size_t size_class) {
  const std::string from = show_bytes(fabric::large_from(size_class));
  if (size_class + 1 == fabric::large_classes) return from + " and more";
  return from + " - " + show_bytes(fabric::large_from(size_class + 1));
}

std::string show_gain(double ns) {
  if (ns == 0) return "-";
  return (ns < 0 ? "-" : "") + show_ns(std::abs(ns));
}

void print_gains(std::FILE* stream, const LargeSums& sums, const RingPrice& ring) {
  std::vector<TextTable::Column> columns = {{"large messages", Align::left}, {"path", Align::left}};
  for (const char* title : {"messages", "bytes", "median time", "ring, estimated", "gained"})
    columns.push_back({title, Align::right});
  TextTable table(columns);
  for (const LargeRow& row : sums.rows) {
    const bool here = row.path != fabric::Path::offnode && ring.measured;
    table.add({class_name(row.size_class), fabric::path_names[static_cast<std::size_t>(row.path)],
               fmt::format("{}", row.messages), show_bytes(row.bytes),
               row.typical_ns == 0 ? "-" : show_ns(row.typical_ns),
               here && row.typical_ns != 0 ? show_ns(row.ring_ns) : "-",
               ring.measured ? show_gain(row.gained_ns) : "-"});
  }
  print_indented(stream, table);
  if (!ring.measured) {
    fmt::print(stream, "{}",
               wrapped("What the ring would have taken is not known, as this machine was never "
                       "calibrated: run `haul tune` once.",
                       2));
  } else if (sums.direct_ns != 0) {
    const double gained = sums.direct_ring_ns - sums.direct_ns;
    fmt::print(
        stream, "{}",
        wrapped(fmt::format("What was mapped, or copied by the kernel, took about {}; through the "
                            "ring it would have taken about {} {} (estimated by this machine's "
                            "calibration).",
                            show_ns(sums.direct_ns), show_ns(std::abs(gained)),
                            gained < 0 ? "less" : "more"),
                2));
  }
  constexpr double too_much = 1.25;
  if (ring.measured && sums.above_estimate() > too_much) {
    fmt::print(stream, "{}",
               wrapped(fmt::format("Messages {}took {:.1f} times what the calibration says of the "
                                   "ring, so gains look smaller than they are: the CPUs had other "
                                   "work, ranks computed while messages waited, or `haul tune` is "
                                   "due again.",
                                   sums.ring_estimated_ns > 0 ? "through the ring " : "",
                                   sums.above_estimate()),
                       2));
  }
  if (sums.aside != 0) {
    fmt::print(stream, "{}",
               wrapped(fmt::format("{} of these {} messages arrived while their rank computed: a "
                                   "thread of haul's moved them.",
                                   sums.aside, sums.messages),
                       2));
  }
}

std::string show_ranks(std::vector<std::string> ranks) {
  const std::size_t all = ranks.size();
  if (all > shown_ranks) ranks.resize(shown_ranks - 1);
  return fmt::format("{}{}", fmt::join(ranks, ", "),
                     all > ranks.size() ? fmt::format(" and {} more", all - ranks.size()) : "");
}

void print_buffers(std::FILE* stream, const BufferSums& sums, SharedMemory shared) {
  if (sums.rows.empty()) return;
  std::vector<TextTable::Column> columns = {{"memory that was not mapped", Align::left},
                                            {"ranks", Align::left}};
  for (const char* title : {"sent from", "received into", "bytes", "largest"})
    columns.push_back({title, Align::right});
  TextTable table(columns);
  const std::size_t shown = std::min(sums.rows.size(), shown_buffers);
  for (std::size_t i = 0; i < shown; ++i) {
    const BufferRow& row = sums.rows[i];
    table.add({memory_name(row.kind, row.name), show_ranks(row.ranks),
               fmt::format("{}", row.sent_messages), fmt::format("{}", row.received_messages),
               show_bytes(row.bytes), show_bytes(row.largest)});
  }
  fmt::print(stream, "\n");
  print_indented(stream, table);
  if (shown < sums.rows.size())
    fmt::print(stream, "  ... and {} kinds of memory more (--json names all).\n",
               sums.rows.size() - shown);
  if (sums.other_messages != 0)
    fmt::print(stream, "  ... and {} messages of {} in memory that was not looked at.\n",
               sums.other_messages, show_bytes(sums.other_bytes));
  fmt::print(stream, "{}",
             wrapped("A message is copied once where the sender's or the receiver's memory can be "
                     "mapped. What to do:",
                     2));
  // Each remedy once, after the kinds of memory that it is for.
  std::vector<fabric::MemoryKind> kinds;
  std::vector<std::pair<std::string, std::string>> remedies;
  for (std::size_t i = 0; i < shown; ++i) {
    const fabric::MemoryKind kind = sums.rows[i].kind;
    if (std::ranges::find(kinds, kind) != kinds.end()) continue;
    kinds.push_back(kind);
    const std::string name = memory_name(kind, ""), text = memory_remedy(kind, shared);
    const auto same = std::ranges::find_if(
        remedies, [&text](const auto& remedy) { return remedy.second == text; });
    if (same == remedies.end()) {
      remedies.emplace_back(name, text);
    } else {
      same->first += ", " + name;
    }
  }
  for (const auto& [names, text] : remedies)
    fmt::print(stream, "{}", wrapped(fmt::format("{}: {}.", names, text), 4));
}

}  // namespace

void print_large(std::FILE* stream, const std::vector<EndpointReport>& reports,
                 const RingPrice& ring, SharedMemory shared) {
  const std::vector<const fabric::MonitorReply*> replies = replies_of(reports);
  const LargeSums sums = sum_large(replies, ring);
  if (sums.rows.empty()) return;
  fmt::print(stream, "\n");
  print_gains(stream, sums, ring);
  print_buffers(stream, sum_buffers(replies), shared);
}

Json large_document(const std::vector<EndpointReport>& reports, const RingPrice& ring,
                    SharedMemory shared) {
  const LargeSums sums = sum_large(replies_of(reports), ring);
  Json all;
  all["calibrated"] = ring.measured;
  all["large_messages"] = Json::array();
  for (const LargeRow& row : sums.rows) {
    Json one = {{"from_bytes", fabric::large_from(row.size_class)},
                {"path", fabric::path_names[static_cast<std::size_t>(row.path)]},
                {"messages", row.messages},
                {"bytes", row.bytes}};
    if (row.typical_ns != 0) one["median_ns"] = row.typical_ns;
    if (ring.measured && row.typical_ns != 0 && row.path != fabric::Path::offnode)
      one["ring_estimated_ns"] = row.ring_ns;
    if (ring.measured && row.gained_ns != 0) one["gained_estimated_ns"] = row.gained_ns;
    all["large_messages"].push_back(one);
  }
  all["arrived_while_computing"] = sums.aside;
  all["unmapped_memory"] = Json::array();
  for (const EndpointReport& report : reports) {
    for (std::uint32_t i = 0; i < report.reply.slow_count; ++i) {
      const fabric::SlowBuffer& buffer = report.reply.slow[i];
      const auto kind = static_cast<fabric::MemoryKind>(buffer.kind);
      all["unmapped_memory"].push_back({{"pid", report.reply.pid},
                                        {"rank", report.reply.rank},
                                        {"kind", memory_key(kind)},
                                        {"name", buffer.name},
                                        {"begin", fmt::format("{:#x}", buffer.begin)},
                                        {"end", fmt::format("{:#x}", buffer.end)},
                                        {"sent_messages", buffer.sent_messages},
                                        {"received_messages", buffer.received_messages},
                                        {"bytes", buffer.bytes},
                                        {"largest_bytes", buffer.largest},
                                        {"remedy", memory_remedy(kind, shared)}});
    }
  }
  return all;
}

}  // namespace haul::cli
