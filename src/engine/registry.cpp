// The engines of this build in their fixed order, and what each has moved.
#include "engine/registry.hpp"

#include <atomic>
#include <cstring>

namespace haul {
namespace {

using Access = Engine& (*)() noexcept;
constexpr Access engines[] = {cpu_engine,    cma_engine, fault_engine, uffd_engine,  procmem_engine,
                              dmadev_engine, dsa_engine, nic_engine,   uring_engine, cuda_engine};
static_assert(sizeof(engines) / sizeof(engines[0]) <= max_engines);

// Threads count on different lines, so counting does not move a line between cores.
constexpr unsigned shard_count = 16;
struct alignas(128) Shard {
  std::atomic<std::uint64_t> chunks[max_engines];
  std::atomic<std::uint64_t> bytes[max_engines];
};
constinit Shard shards[shard_count];
constinit std::atomic<unsigned> shards_given{0};
constinit thread_local unsigned own_shard = shard_count;  // shard_count: none yet

}  // namespace

Expected<std::uint64_t> Engine::open_memory(const char*) noexcept {
  return make_error(Code::not_supported, 0, "The engine %s has no memory of its own.",
                    facts().name);
}

std::size_t engine_count() noexcept {
  return sizeof(engines) / sizeof(engines[0]);
}

Engine& engine_at(std::size_t index) noexcept {
  return engines[index]();
}

Engine* engine_by_name(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  for (const Access access : engines) {
    if (std::strcmp(access().facts().name, name) == 0) return &access();
  }
  return nullptr;
}

bool is_asynchronous(std::uint8_t index) noexcept {
  // A bit an engine, besides one that says that the others are known.
  static constinit std::atomic<std::uint32_t> known{0};
  constexpr std::uint32_t is_known = 1u << 31;
  static_assert(max_engines < 31);
  std::uint32_t bits = known.load(std::memory_order_relaxed);
  if (bits == 0) [[unlikely]] {
    bits = is_known;
    for (std::size_t i = 0; i < engine_count(); ++i)
      if (!engine_at(i).facts().synchronous) bits |= 1u << i;
    known.store(bits, std::memory_order_relaxed);
  }
  return index < engine_count() && (bits >> index & 1) != 0;
}

plan::EngineView engine_view(std::size_t index) noexcept {
  const Engine& engine = engine_at(index);
  const EngineFacts& facts = engine.facts();
  plan::EngineView view;
  view.name = facts.name;
  view.available = engine.available();
  view.checked = facts.checked;
  view.synchronous = facts.synchronous;
  view.device = facts.device;
  if (facts.device && view.available) view.facts = engine.device_facts();
  return view;
}

void count_moved(std::size_t engine_index, std::uint64_t bytes) noexcept {
  if (engine_index >= max_engines) return;
  if (own_shard == shard_count) {
    own_shard = shards_given.fetch_add(1, std::memory_order_relaxed) % shard_count;
  }
  // Relaxed: statistics, ordered with nothing.
  shards[own_shard].chunks[engine_index].fetch_add(1, std::memory_order_relaxed);
  shards[own_shard].bytes[engine_index].fetch_add(bytes, std::memory_order_relaxed);
}

EngineCounters engine_counters(std::size_t engine_index) noexcept {
  EngineCounters sum;
  if (engine_index >= max_engines) return sum;
  for (const Shard& shard : shards) {
    sum.chunks += shard.chunks[engine_index].load(std::memory_order_relaxed);
    sum.bytes += shard.bytes[engine_index].load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace haul
