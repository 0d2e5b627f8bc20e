// bcisim info: what a trace holds.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/table.hpp"
#include "format/reader.hpp"
#include "study/profile.hpp"

namespace bcisim::cli {
namespace {

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void print(const nlohmann::json& metadata, const Profile& p) {
  for (const char* key : {"workload", "role", "kernel", "cut"}) {
    const auto found = metadata.find(key);
    if (found == metadata.end()) continue;
    fmt::print("{}: {}\n", key,
               printable(found->is_string() ? found->get<std::string>() : found->dump()));
  }
  fmt::print("instructions: {}, {:.1f} % in the kernel, {:.1f} % in copy loops\n", p.instructions,
             percent(p.kernel_instructions, p.instructions),
             percent(p.copy_instructions, p.instructions));
  fmt::print("loads: {}, stores: {}, conditional branches: {}, interrupts and faults: {}\n",
             p.loads, p.stores, p.branches, p.interrupts);
  fmt::print("devices read {} bytes of memory and wrote {}\n", p.device_read_bytes,
             p.device_written_bytes);
  fmt::print(
      "copies: {} of {:.0f} bytes on average; {:.0f} % of them above 5000 instructions apart, "
      "{:.0f} % below 2000\n",
      p.copies, ratio(p.copy_bytes, p.copies), percent(p.gaps_above_5000, p.gaps),
      percent(p.gaps_below_2000, p.gaps));
  fmt::print(
      "first dependent instruction: {:.0f} after the copy, on average of {:.0f} % of the copies\n",
      ratio(p.to_dependent, p.with_dependent), percent(p.with_dependent, p.copies));
  Table kinds({"kind", "copies", "bytes", "bytes each"});
  for (const auto& [kind, count] : p.by_kind) {
    kinds.add({std::string(name_of(kind)), fmt::format("{}", count.first),
               fmt::format("{}", count.second),
               fmt::format("{:.0f}", ratio(count.second, count.first))});
  }
  fmt::print("\n");
  kinds.print();
  Table sizes({"size from", "copies"});
  for (const auto& [log, copies] : p.by_size) {
    sizes.add({fmt::format("{}", std::uint64_t{1} << log), fmt::format("{}", copies)});
  }
  fmt::print("\n");
  sizes.print();
  constexpr std::size_t most_sites = 10;
  Table sites({"returns to", "kind", "copies", "bytes each"});
  for (std::size_t i = 0; i < std::min(most_sites, p.sites.size()); ++i) {
    const ProfiledSite& site = p.sites[i];
    sites.add({place_of(site), std::string(name_of(site.kind)), fmt::format("{}", site.copies),
               fmt::format("{:.0f}", ratio(site.bytes, site.copies))});
  }
  fmt::print("\n");
  sites.print();
}

}  // namespace

void add_info(CLI::App& root) {
  CLI::App* const command =
      root.add_subcommand("info", "What a trace holds: instructions, copies, sites");
  const auto path = std::make_shared<std::string>();
  command->add_option("trace", *path, "The trace")->required();
  command->callback([path] {
    refuse_pipes({*path});
    print(TraceReader(*path).metadata(), profile_of(*path));
  });
}

}  // namespace bcisim::cli
