// The one table of knobs. A row yields the environment variable HAUL_<AREA>_<KNOB>, --help, the
// docs and the validation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace haul {

enum class KnobKind : std::uint8_t { number, bytes, choice, text };

// The order is the table's order.
enum class Knob : std::uint8_t {
  log_level,          // HAUL_LOG_LEVEL: choice error|warning|info|debug
  copy_block_bytes,   // HAUL_COPY_BLOCK_BYTES: bytes, power of two, 64..1M, default 4K
  mover_cores,        // HAUL_MOVER_CORES: number 0..16, default 1
  mover_spin_us,      // HAUL_MOVER_SPIN_US: number 0..100000, default 10000
  mover_cpu,          // HAUL_MOVER_CPU: text, "auto" or a CPU number
  mover_lease,        // HAUL_MOVER_LEASE: choice on|off
  mover_patience_ms,  // HAUL_MOVER_PATIENCE_MS: number 0..3600000, default 5000
  plan_mover,         // HAUL_PLAN_MOVER: choice auto|caller|thread|service
  plan_engine,        // HAUL_PLAN_ENGINE: choice auto|cpu|cma|fault
  plan_inline_bytes,  // HAUL_PLAN_INLINE_BYTES: text, "auto" or bytes: copies below are inline
  engine_fault,       // HAUL_ENGINE_FAULT: text, the schedule of the fault engine, default ""
  tune_cache,       // HAUL_TUNE_CACHE: text, path of the calibration file; "" = XDG cache directory
  tune_background,  // HAUL_TUNE_BACKGROUND: choice on|off
  memory_arena_bytes,   // HAUL_MEMORY_ARENA_BYTES: bytes, 64M..1024G, default 256G
  service_use,          // HAUL_SERVICE_USE: choice auto|off|demand
  service_socket,       // HAUL_SERVICE_SOCKET: text, path; "" = the usual places
  service_weight,       // HAUL_SERVICE_WEIGHT: number 1..100, default 10
  service_map_bytes,    // HAUL_SERVICE_MAP_BYTES: bytes, 0..1024G, default 64G
  fabric_collapse,      // HAUL_FABRIC_COLLAPSE: choice on|off
  fabric_eager_bytes,   // HAUL_FABRIC_EAGER_BYTES: text, "auto" or 4K..64K
  fabric_kernel_bytes,  // HAUL_FABRIC_KERNEL_BYTES: text, "auto" or bytes
  fabric_offnode,       // HAUL_FABRIC_OFFNODE: text, "auto", "off" or a provider's name
  fabric_report,        // HAUL_FABRIC_REPORT: text, an abstract socket's name; "" = none
  count_
};

struct KnobRow {
  Knob knob;
  KnobKind kind;
  const char* variable;      // "HAUL_COPY_BLOCK_BYTES"
  const char* default_text;  // as a user would type it
  const char* choices;       // "a|b|c" for a choice; the word of a "word or number" text; else ""
  std::uint64_t minimum, maximum;  // numbers and bytes
  bool power_of_two;
  const char* help;  // one sentence
};

// All rows, Knob::count_ of them.
const KnobRow* knob_rows() noexcept;

// What knob_number() says of a text that is set to "auto".
inline constexpr std::uint64_t knob_auto = ~std::uint64_t{0};

// The values, read from the environment once, on first use (wait-free, no allocation, no lock; safe
// in a signal handler). An unusable value is reported once by log(), and the default holds. An
// empty variable is an unset one; a set-user-id program sees defaults only.
std::uint64_t knob_number(Knob knob) noexcept;  // number and bytes; a choice's index; see knob_auto
const char* knob_text(Knob knob) noexcept;      // as set, or the default; lives for ever

// Parses one value against a row: numbers, or bytes with K, M, G suffixes; a choice gives its
// index. For the CLI and tests.
Expected<std::uint64_t> parse_knob(const KnobRow& row, const char* text) noexcept;

// Parses "4096", "64K", "1M", "2G" (small letters too). Also for the CLI's --sizes.
Expected<std::uint64_t> parse_bytes(const char* text) noexcept;

// Tests only, while no other thread reads a knob: forget what was read from the environment.
void reread_knobs() noexcept;

}  // namespace haul
