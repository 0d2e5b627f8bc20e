// How the machine's CPUs spent their time, by /proc/stat.
#pragma once

#include <cstdint>

namespace haul::tune {

// In ticks since boot; both 0: not known.
struct CpuTimes {
  std::uint64_t all = 0;
  std::uint64_t stolen = 0;  // by the host of a virtual machine
};

CpuTimes parse_cpu_times(const char* text) noexcept;

// Reads a file laid out as /proc/stat. It may stall where lxcfs stands for it.
CpuTimes read_cpu_times(const char* path) noexcept;

// The share that was stolen between the two; 0 where it is not known.
double stolen_share(const CpuTimes& before, const CpuTimes& after) noexcept;

}  // namespace haul::tune
