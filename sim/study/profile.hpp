// What a trace holds, without a model: its copies above all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "convert/summary.hpp"
#include "format/event.hpp"

namespace bcisim {

struct ProfiledSite {
  std::uint64_t address = 0;  // where the routine returns to
  std::string name;           // from the trace's metadata; empty: unknown
  CopyKind kind = CopyKind::copy;
  std::uint64_t copies = 0, bytes = 0;
};

struct Profile {
  std::uint64_t instructions = 0, kernel_instructions = 0, loads = 0, stores = 0, branches = 0;
  std::uint64_t interrupts = 0, device_read_bytes = 0, device_written_bytes = 0;
  // Copies that a bulk instruction replaces: no fills, none with a checksum.
  std::uint64_t copies = 0, copy_bytes = 0, copy_instructions = 0;
  // Instructions between the end of a copy and the beginning of the next (003, IV): how many of the
  // gaps are longer than 5000, shorter than 2000.
  std::uint64_t gaps = 0, gaps_above_5000 = 0, gaps_below_2000 = 0;
  // Instructions from the end of a copy to the first that loads from its destination, or stores to
  // either side (003, III-C), where there is one before the next copy.
  std::uint64_t with_dependent = 0, to_dependent = 0;
  std::map<CopyKind, std::pair<std::uint64_t, std::uint64_t>>
      by_kind;                                // calls, bytes; of all kinds
  std::map<unsigned, std::uint64_t> by_size;  // copies of [2^key, 2^(key+1)) bytes
  std::vector<ProfiledSite> sites;            // most bytes first
};

// Throws TraceError.
Profile profile_of(const std::string& trace);

}  // namespace bcisim
