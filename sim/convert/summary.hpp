// What a conversion found.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "format/event.hpp"
#include "format/totals.hpp"

namespace bcisim {

struct ConvertSummary {
  Totals totals;  // of the trace
  std::uint64_t kernel_instructions = 0;
  std::uint64_t interrupts = 0;
  std::uint64_t faulted = 0;        // executions that did not complete: not in the trace
  std::uint64_t io_references = 0;  // to registers of devices: not in the trace
  std::uint64_t guessed_pages = 0;  // of references that crossed a page: the second was not known
  std::uint64_t unknown_code = 0;   // static instructions that Zydis does not know

  struct Copies {
    std::uint64_t calls = 0, bytes = 0;
  };
  std::array<Copies, copy_kinds> copies;  // by CopyKind
  std::uint64_t empty_calls = 0;          // of routines that had nothing to copy
  // Calls that are not marked as copies: their references leave gaps, the sides differ in length,
  // or they are too long to be held, or end with the address space (both: too_long).
  struct Unmarked {
    std::uint64_t scattered = 0, unequal = 0, too_long = 0;
    std::uint64_t all() const { return scattered + unequal + too_long; }
  };
  Unmarked unmarked;

  std::uint64_t device_read_bytes = 0, device_written_bytes = 0;
  std::uint64_t file_bytes = 0;
};

// Lines for people, the last ended by a newline.
std::string to_text(const ConvertSummary& summary);
nlohmann::json to_json(const ConvertSummary& summary);

// "from_user" and the like.
const char* name_of(CopyKind kind);

}  // namespace bcisim
