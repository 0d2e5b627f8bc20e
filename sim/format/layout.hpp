// The numbers of the trace format, as format/README.md gives them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace bcisim::layout {

// No view of a literal: each file that includes this may have a literal of its own.
inline constexpr std::array<char, 8> magic{'B', 'C', 'I', 'T', 'R', 'A', 'C', 'E'};
inline constexpr std::uint32_t version = 2;

enum class FrameKind : std::uint32_t { end = 0, checkpoint = 1, instructions = 2 };

// Columns of a frame of instructions, in the order in which they stand in it.
enum Column : unsigned {
  path,              // which instruction follows which
  shapes,            // which references an instruction makes: numbers of shapes
  shape_exceptions,  // where an instruction makes others than the time before
  shape_definitions,
  taken_exceptions,  // branches that say otherwise than the instruction after them
  address_codes,
  address_values,
  page_exceptions,  // references whose physical page is not the predicted one
  events,
  static_addresses,
  static_pages,
  static_forms,  // numbers of forms
  form_definitions,
  columns
};

// Limits of a frame and of its parts. A writer ends a frame before one is passed, a reader refuses
// what passes one: so a damaged file cannot make it ask for memory without end.
inline constexpr std::size_t most_metadata_bytes = std::size_t{16} << 20;
inline constexpr std::size_t most_instructions = std::size_t{1} << 20;
inline constexpr std::size_t most_references_of_frame = std::size_t{1} << 22;
inline constexpr std::size_t most_events = std::size_t{1} << 18;
inline constexpr std::size_t most_statics_of_frame = std::size_t{1} << 20;
inline constexpr std::size_t most_statics = std::size_t{1} << 22;
inline constexpr std::size_t most_column_bytes = std::size_t{64} << 20;
inline constexpr std::size_t most_payload_bytes = std::size_t{80} << 20;  // of a frame, compressed
inline constexpr std::size_t most_blocks = std::size_t{1} << 20;          // of a checkpoint

// Limits of what a trace says, for models to rely on.
inline constexpr std::uint64_t page_bytes = 4096;
inline constexpr unsigned page_shift = 12;
inline constexpr std::uint64_t most_page = (std::uint64_t{1} << 52) - 1;
inline constexpr unsigned most_reference_bytes = 512;
inline constexpr unsigned most_instruction_bytes = 15;
inline constexpr std::uint64_t most_copy_bytes = std::uint64_t{1} << 26;
inline constexpr std::uint64_t most_device_bytes = std::uint64_t{1} << 32;

// Shapes, forms and sites are numbered in the order of their definitions; after so many the numbers
// begin at 0 again and replace the older definitions.
inline constexpr std::size_t table_entries = std::size_t{1} << 16;

}  // namespace bcisim::layout
