// The machine that is simulated: every number of paper 003, section V, and those that it leaves
// open (marked "open"). Times are cycles.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "format/instruction.hpp"

namespace bcisim {

using Cycle = std::uint64_t;

inline constexpr unsigned page_bytes = 4096;

struct CacheParameters {
  std::uint64_t bytes;
  unsigned ways;
  unsigned latency;
  bool operator==(const CacheParameters&) const = default;
};

struct Parameters {
  // The core: 4-wide, out of order, 4 GHz.
  unsigned width = 4, rob_entries = 128, lsq_entries = 32;
  unsigned frontend_cycles = 8;  // open: from fetch to dispatch; a misprediction costs no less
  unsigned predictor_entries =
      4096;  // open: two-bit counters; the paper says bimodal, not how many

  unsigned block_bytes = 64;
  CacheParameters l1i{32 << 10, 4, 2}, l1d{32 << 10, 4, 2};  // ways: open
  CacheParameters l2{1 << 20, 8, 8};
  unsigned mshrs = 16;
  unsigned tlb_entries = 64;  // each of the two, fully associative
  unsigned walk_cycles = 30;  // open: what a TLB miss costs
  unsigned memory_cycles = 300;
  double bus_bytes_per_cycle = 1.6;  // 6.4 GB/s at 4 GHz

  // The engine, BCIE.
  unsigned cst_entries = 3;       // page pairs under way at once
  unsigned engine_parallel = 16;  // open: blocks under way at once; as many as there are MSHRs
  unsigned modulus_cycles = 1;    // address arithmetic of a block
  unsigned shift_cycles = 1;      // open: Select&Shift, where the sides are not aligned alike
  // Open, though III-B (what the write-combining buffer saves) and figure 3 speak for it: a
  // cacheable destination block that no cache has is read from memory, even if all of it is
  // written.
  bool reads_destination = true;
  // Open: of the write-combining buffer; as many as there are MSHRs. 0: a block is done when the
  // bus has carried it, else when it has an entry.
  unsigned write_buffer_entries = 16;

  bool operator==(const Parameters&) const = default;
  // Cycles for which a block occupies the bus.
  unsigned bus_block_cycles() const {
    return static_cast<unsigned>(std::lround(block_bytes / bus_bytes_per_cycle));
  }
};

// Open: what executing takes, by class: a simple instruction 1, a multiplication 3, a division 20,
// floating point and vectors 4. A load adds its time, less one cycle.
constexpr unsigned latency_of(InstructionClass kind) {
  constexpr std::array<unsigned char, instruction_classes> cycles{1, 3, 20, 4, 1, 1, 1, 1};
  return cycles[static_cast<std::size_t>(kind)];
}

// "", or what is wrong with them: one sentence with the remedy.
std::string why_wrong(const Parameters& parameters);

}  // namespace bcisim
