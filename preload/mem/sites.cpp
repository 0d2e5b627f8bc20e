#include "preload/mem/sites.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/machine/clock.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/mappings.hpp"

namespace haul::preload {
namespace {

constinit Table* table = nullptr;
constinit char table_path[512] = "";  // "" for none
constinit std::atomic<std::uint64_t> all_ns{0};

// Of a way that was refused.
constexpr std::uint64_t refused_ns = 1'000'000'000;

// A moment in which the machine was slow says little about a way, so a sample counts as twice the
// average at most, and a faster one for more. (Relaxed stores by several threads may lose a sample;
// the average does not mind.)
void blend(std::atomic<std::uint64_t>& average, std::uint64_t sample) noexcept {
  const std::uint64_t before = average.load(std::memory_order_relaxed);
  std::uint64_t after = sample;
  if (before != 0 && before != refused_ns) {
    after = sample < before ? before - (before - sample) / 2
                            : before + (std::min(sample - before, before) + 3) / 4;
  }
  average.store(after == 0 ? 1 : after, std::memory_order_relaxed);
}

std::uint64_t ns_per_mib(std::uint64_t ns, std::size_t length) noexcept {
  return ns * 1024 / (length / 1024);
}

void name(Site& site, std::uintptr_t address) noexcept {
  struct Search {
    Site* site;
    std::uintptr_t address;
  } search{&site, address};
  const auto look = [](const os::Mapping& mapping, void* context) {
    const auto& [found, wanted] = *static_cast<Search*>(context);
    if (wanted < mapping.begin || wanted >= mapping.end) return;
    found->file_offset = wanted - mapping.begin + mapping.offset;
    // The end of a path says more than its begin.
    const std::size_t length = std::strlen(mapping.name), room = sizeof found->module - 1;
    std::memcpy(found->module, mapping.name + (length > room ? length - room : 0),
                std::min(length, room));
  };
  os::for_each_mapping(look, &search);
  // Release: pairs with the reader, who looks at `named` first.
  site.named.store(1, std::memory_order_release);
}

}  // namespace

void make_table(const char* directory) noexcept {
  void* memory = nullptr;
  if (directory != nullptr) {
    // A process that has become another program (exec) has made one before.
    std::snprintf(table_path, sizeof table_path, "%s/%d.%llx", directory, os::process_id(),
                  static_cast<unsigned long long>(now_ns()));
    memory = os::map_new_file(table_path, sizeof(Table));
  }
  if (memory == nullptr) {
    table_path[0] = '\0';
    memory = os::map_anonymous(sizeof(Table));
  }
  if (memory == nullptr) return;
  auto* made = static_cast<Table*>(memory);
  made->pid = static_cast<std::uint32_t>(os::process_id());
  os::program_path(made->program, sizeof made->program);
  made->magic = table_magic;
  table = made;
}

void remove_empty_table() noexcept {
  // (A child of fork shares its parent's.)
  if (table == nullptr || table_path[0] == '\0' ||
      table->pid != static_cast<std::uint32_t>(os::process_id()) ||
      table->used.load(std::memory_order_relaxed) != 0)
    return;
  os::remove_file(table_path);
  table_path[0] = '\0';
}

Site* site_of(std::uintptr_t address) noexcept {
  if (table == nullptr) return nullptr;
  std::size_t at = (address * 0x9e3779b97f4a7c15u) >> 56;  // 8 bits
  static_assert(Table::room == std::size_t{1} << 8);
  constexpr unsigned attempts = 32;
  for (unsigned i = 0; i < attempts; ++i, at = (at + 1) % Table::room) {
    Site& site = table->sites[at];
    std::uint64_t found = site.address.load(std::memory_order_relaxed);
    if (found == address) return &site;
    if (found != 0) continue;
    if (site.address.compare_exchange_strong(found, address, std::memory_order_relaxed)) {
      table->used.fetch_add(1, std::memory_order_relaxed);
      name(site, address);
      return &site;
    }
    if (found == address) return &site;
  }
  table->nameless.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

void count_refusal(NotShared why) noexcept {
  if (table != nullptr)
    table->refusals[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
}

void count_touches(std::uint64_t all) noexcept {
  if (table != nullptr) table->touches.store(all, std::memory_order_relaxed);
}

std::uint64_t spent_ns() noexcept {
  return all_ns.load(std::memory_order_relaxed);
}

void note(Site* site, Pages pages, std::size_t length, Way way, std::uint64_t ns) noexcept {
  all_ns.fetch_add(ns, std::memory_order_relaxed);
  if (site == nullptr) return;
  WayTally& tally = site->kind(pages, length).tally(way);
  tally.calls.fetch_add(1, std::memory_order_relaxed);
  tally.bytes.fetch_add(length, std::memory_order_relaxed);
  tally.ns.fetch_add(ns, std::memory_order_relaxed);
  if (!returns_early(way)) blend(tally.recent_ns_per_mib, ns_per_mib(ns, length));
}

void note_waits(WayTally& tally, std::size_t length, std::uint64_t call_ns,
                std::uint64_t waited_ns) noexcept {
  all_ns.fetch_add(waited_ns, std::memory_order_relaxed);
  tally.ns.fetch_add(waited_ns, std::memory_order_relaxed);
  blend(tally.recent_ns_per_mib, ns_per_mib(call_ns + waited_ns, length));
}

void note_refused(WayTally& tally) noexcept {
  tally.recent_ns_per_mib.store(refused_ns, std::memory_order_relaxed);
}

}  // namespace haul::preload
