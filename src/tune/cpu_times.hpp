// How the machine's CPUs have spent their time, by /proc/stat.
#pragma once

#include <cstdint>

namespace haul::tune {

// In ticks since boot; both 0: unknown.
struct CpuTimes {
  std::uint64_t all = 0;
  std::uint64_t stolen = 0;  // by the host of a virtual machine
};

CpuTimes parse_cpu_times(const char* text) noexcept;

// Reads a file laid out like /proc/stat. It may stall where lxcfs provides that.
CpuTimes read_cpu_times(const char* path) noexcept;

// The share that was stolen between the two; 0 if unknown.
double stolen_share(const CpuTimes& before, const CpuTimes& after) noexcept;

}  // namespace haul::tune
