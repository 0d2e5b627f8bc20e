// The one table of knobs. A row yields the environment variable HAUL_<AREA>_<KNOB>, --help, the
// docs and the validation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace haul {

enum class KnobKind : std::uint8_t { number, bytes, choice, text };

// In the order of the table in knobs.cpp, whose rows describe them.
enum class Knob : std::uint8_t {
  log_level,
  copy_block_bytes,
  mover_cores,
  mover_spin_us,
  mover_cpu,
  mover_lease,
  mover_patience_ms,
  plan_mover,
  plan_engine,
  plan_inline_bytes,
  engine_fault,
  engine_dmadev,
  engine_dsa,
  engine_nic,
  engine_cuda,
  tune_cache,
  tune_background,
  memory_arena_bytes,
  memory_shared_from_bytes,
  memory_huge,
  memory_register,
  memory_registered_bytes,
  service_use,
  service_socket,
  service_weight,
  service_map_bytes,
  fabric_collapse,
  fabric_eager_bytes,
  fabric_part_bytes,
  fabric_cell_bytes,
  fabric_piece_bytes,
  fabric_own_ahead,
  fabric_demote,
  fabric_copy_in,
  fabric_copy_out,
  fabric_kernel_bytes,
  fabric_stream_bytes,
  fabric_offnode,
  fabric_overlap,
  fabric_register,
  fabric_report,
  transparent_plan,
  transparent_from_bytes,
  transparent_sample,
  transparent_report,
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

// What knob_number() returns for a text that is set to "auto".
inline constexpr std::uint64_t knob_auto = ~std::uint64_t{0};

// The values, read from the environment once, on first use (wait-free, no allocation, no lock;
// async-signal-safe). An unusable value is reported once by log(), and the default is used. An
// empty variable counts as unset; a set-user-id program gets the defaults only.
std::uint64_t knob_number(Knob knob) noexcept;  // number and bytes; a choice's index; see knob_auto
const char* knob_text(Knob knob) noexcept;      // as set, or the default; lives for ever

// "a number from 0 to 16", "one of on|off": what a row accepts.
void describe_knob_values(const KnobRow& row, char* text, std::size_t size) noexcept;

// Parses one value against a row: numbers, or bytes with the suffixes K, M, G; for a choice,
// returns its index. For the CLI and tests.
Expected<std::uint64_t> parse_knob(const KnobRow& row, const char* text) noexcept;

// Parses "4096", "64K", "1M", "2G" (small letters too). Also for the CLI's --sizes.
Expected<std::uint64_t> parse_bytes(const char* text) noexcept;

// For tests, while no other thread reads a knob: forgets what was read from the environment.
void reread_knobs() noexcept;

}  // namespace haul
