// The engines of this build, by number and by name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/engine.hpp"
#include "plan/plan.hpp"

namespace haul {

// Fixed order: cpu, cma, fault, uffd, procmem, dmadev, dsa, nic, uring, cuda. Static storage,
// no constructor runs before first use.
std::size_t engine_count() noexcept;
Engine& engine_at(std::size_t index) noexcept;
Engine* engine_by_name(const char* name) noexcept;  // nullptr if there is none
inline constexpr std::size_t max_engines = 12;
inline constexpr std::uint8_t cpu_index = 0, uffd_index = 3, procmem_index = 4;

Engine& cpu_engine() noexcept;
Engine& cma_engine() noexcept;
Engine& fault_engine() noexcept;
Engine& uffd_engine() noexcept;
Engine& procmem_engine() noexcept;
Engine& dmadev_engine() noexcept;
Engine& dsa_engine() noexcept;
Engine& nic_engine() noexcept;
Engine& uring_engine() noexcept;
Engine& cuda_engine() noexcept;

// Is it an asynchronous engine's number? Any byte may be asked about.
bool is_asynchronous(std::uint8_t index) noexcept;

// What the planner is told of an engine, but for what depends on the request and on its queue.
plan::EngineView engine_view(std::size_t index) noexcept;

// Counters for `haul info` and tests; relaxed.
void count_moved(std::size_t engine_index, std::uint64_t bytes) noexcept;
struct EngineCounters {
  std::uint64_t chunks = 0, bytes = 0;
};
EngineCounters engine_counters(std::size_t engine_index) noexcept;

}  // namespace haul
