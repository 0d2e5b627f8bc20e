#include "cli/mpi/fabric_top.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/kit/table.hpp"
#include "tools/units.hpp"

namespace haul::cli {
namespace {

// What a counter has gained since the look before; that of a new endpoint starts from zero.
void add_difference(Traffic& sum, const Traffic& now, const Traffic& before) {
  for (std::size_t i = 0; i < fabric::path_count; ++i) {
    sum.messages[i] += now.messages[i] - std::min(before.messages[i], now.messages[i]);
    sum.bytes[i] += now.bytes[i] - std::min(before.bytes[i], now.bytes[i]);
  }
}

void add_state(Traffic& sum, const Traffic& now) {
  sum.copies_in_flight += now.copies_in_flight;
  sum.fallbacks += now.fallbacks;
  sum.unexpected_bytes += now.unexpected_bytes;
  sum.peers = std::max(sum.peers, now.peers);
}

}  // namespace

void MessageWatch::look() {
  const auto time = std::chrono::steady_clock::now();
  seconds_ =
      before_.empty() && now_.empty() ? 0 : std::chrono::duration<double>(time - looked_).count();
  looked_ = time;
  before_ = std::move(now_);
  now_.clear();
  processes_.clear();
  std::vector<std::string> silent;
  for (const EndpointLook& look : look_at_endpoints(&silent)) {
    Traffic& traffic = now_[look.name];
    traffic.add(look.reply);
    Process& process = processes_[look.pid != 0 ? look.pid : look.reply.pid];
    const auto before = before_.find(look.name);
    add_difference(process.since, traffic, before == before_.end() ? Traffic() : before->second);
    add_state(process.now, traffic);
    ++process.endpoints;
  }
  silent_ = silent.size();
}

std::vector<std::string> MessageWatch::lines() const {
  const double seconds = seconds_ > 0 ? seconds_ : 1;
  auto rate = [&](std::uint64_t count) {
    return fmt::format("{:.0f}", static_cast<double>(count) / seconds);
  };
  auto megabytes = [&](std::uint64_t bytes) {
    return fmt::format("{:.1f}", static_cast<double>(bytes) / seconds / 1e6);
  };
  Traffic all;
  std::vector<const std::pair<const pid_t, Process>*> order;
  for (const auto& one : processes_) {
    add_difference(all, one.second.since, Traffic());
    order.push_back(&one);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->second.since.all_bytes() > b->second.since.all_bytes();
  });

  TextTable paths({{"path", Align::left}, {"messages/s", Align::right}, {"MB/s", Align::right}});
  for (std::size_t i = 0; i < fabric::path_count; ++i) {
    paths.add({fabric::path_names[i], rate(all.messages[i]), megabytes(all.bytes[i])});
  }
  std::vector<TextTable::Column> columns = {
      {"pid", Align::right},        {"name", Align::left},       {"peers", Align::right},
      {"messages/s", Align::right}, {"MB/s", Align::right},      {"copies", Align::right},
      {"fallbacks", Align::right},  {"unexpected", Align::right}};
  TextTable table(columns);
  for (const auto* one : order) {
    const auto& [pid, process] = *one;
    table.add({fmt::format("{}", pid), process_name(pid), fmt::format("{}", process.now.peers),
               rate(process.since.all_messages()), megabytes(process.since.all_bytes()),
               fmt::format("{}", process.now.copies_in_flight),
               fmt::format("{}", process.now.fallbacks),
               tools::show_bytes(process.now.unexpected_bytes)});
  }
  std::vector<std::string> lines = {
      fmt::format("messages: {} process{}{}", processes_.size(), processes_.size() == 1 ? "" : "es",
                  silent_ == 0 ? "" : fmt::format(", {} endpoints do not answer", silent_))};
  if (processes_.empty()) return lines;
  for (const TextTable& one : {table, paths}) {
    lines.emplace_back();
    const std::vector<std::string> more = one.lines();
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

}  // namespace haul::cli
