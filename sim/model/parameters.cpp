#include "model/parameters.hpp"

#include <bit>

#include <fmt/format.h>

namespace bcisim {
namespace {

constexpr std::uint64_t most_cache_bytes = std::uint64_t{1} << 30;

std::string why_wrong(const char* name, const CacheParameters& cache, unsigned block_bytes) {
  if (!std::has_single_bit(cache.bytes))
    return fmt::format("{} of {} bytes is not a power of two; choose one", name, cache.bytes);
  if (cache.bytes > most_cache_bytes)
    return fmt::format("{} of {} bytes is more than can be simulated; choose 1024M or less", name,
                       cache.bytes);
  const std::uint64_t way_bytes = std::uint64_t{cache.ways} * block_bytes;
  if (cache.ways == 0 || cache.bytes < way_bytes)
    return fmt::format(
        "{} of {} bytes has no room for {} ways of {}-byte blocks; choose other ways", name,
        cache.bytes, cache.ways, block_bytes);
  if (cache.bytes % way_bytes != 0 || !std::has_single_bit(cache.bytes / way_bytes))
    return fmt::format(
        "{} of {} bytes does not divide into {} ways of a power of two of sets; choose "
        "a power of two of ways",
        name, cache.bytes, cache.ways);
  return "";
}

}  // namespace

std::string why_wrong(const Parameters& p) {
  if (!std::has_single_bit(p.block_bytes) || p.block_bytes < 16 || p.block_bytes > 1024)
    return fmt::format("a block of {} bytes cannot be; choose a power of two of 16 to 1024",
                       p.block_bytes);
  struct NamedCache {
    const char* name;
    const CacheParameters& cache;
  };
  for (const auto& [name, cache] :
       {NamedCache{"an L1 instruction cache", p.l1i}, NamedCache{"an L1 data cache", p.l1d},
        NamedCache{"an L2 cache", p.l2}}) {
    std::string wrong = why_wrong(name, cache, p.block_bytes);
    if (!wrong.empty()) return wrong;
  }
  struct Count {
    const char* name;
    unsigned value, most;
  };
  for (const Count& count :
       {Count{"the width", p.width, 64}, Count{"the number of ROB entries", p.rob_entries, 65536},
        Count{"the number of load/store queue entries", p.lsq_entries, 65536},
        Count{"the number of MSHRs", p.mshrs, 250},
        Count{"the number of TLB entries", p.tlb_entries, 65536},
        Count{"the number of CST entries", p.cst_entries, 64},
        Count{"the engine's parallelism", p.engine_parallel, 65536},
        Count{"the number of predictor entries", p.predictor_entries, 1U << 24}}) {
    if (count.value == 0 || count.value > count.most)
      return fmt::format("{} is {}; choose 1 to {}", count.name, count.value, count.most);
  }
  if (p.lsq_entries < most_references)
    return fmt::format(
        "a load/store queue of {} entries cannot hold one instruction's {} references; "
        "choose more",
        p.lsq_entries, most_references);
  if (!std::has_single_bit(p.predictor_entries))
    return fmt::format("{} predictor entries are not a power of two; choose one",
                       p.predictor_entries);
  if (!(p.bus_bytes_per_cycle >= 0.001 && p.bus_bytes_per_cycle <= 1e6))
    return fmt::format("a bus of {} bytes a cycle cannot be; choose 0.001 to 1000000",
                       p.bus_bytes_per_cycle);
  if (p.memory_cycles < p.bus_block_cycles())
    return fmt::format(
        "a memory latency of {} cycles is less than the {} for which a block takes the "
        "bus; choose a longer one or a faster bus",
        p.memory_cycles, p.bus_block_cycles());
  struct Time {
    const char* name;
    unsigned value, least, most;
  };
  for (const Time& time : {Time{"the front end", p.frontend_cycles, 1, 1000},
                           Time{"a TLB miss", p.walk_cycles, 0, 100000},
                           Time{"a hit in the L1 instruction cache", p.l1i.latency, 1, 1000},
                           Time{"a hit in the L1 data cache", p.l1d.latency, 1, 1000},
                           Time{"a hit in the L2 cache", p.l2.latency, 1, 1000},
                           Time{"the engine's address arithmetic", p.modulus_cycles, 0, 1000},
                           Time{"the engine's shift", p.shift_cycles, 0, 1000}}) {
    if (time.value < time.least || time.value > time.most)
      return fmt::format("{} takes {} cycles; choose {} to {}", time.name, time.value, time.least,
                         time.most);
  }
  if (p.write_buffer_entries > 65536)
    return fmt::format("a write-combining buffer of {} entries cannot be; choose 0 to 65536",
                       p.write_buffer_entries);
  if (p.memory_cycles > 100000)
    return "a memory latency above 100000 cycles cannot be; choose less";
  return "";
}

}  // namespace bcisim
