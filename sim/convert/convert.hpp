// Makes a trace of a raw stream.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "convert/summary.hpp"
#include "format/writer.hpp"

namespace bcisim {

struct ConvertOptions {
  std::string output;  // path of the trace
  std::string
      symbols;  // path of a copy of the traced kernel's /proc/kallsyms; empty: no copy calls
  nlohmann::json metadata = nlohmann::json::object();  // "symbols" is added
  int level = TraceWriter::default_level;
};

// Reads the stream (path; "-": standard input) as fast as it comes: one pass, memory for the code
// and for one copy call. Throws TraceError; there is no file then.
//
// What becomes of the records:
// - Instructions that were executed become static instructions, once for each place, physical page
//   and machine code. A repeated string instruction is one dynamic instruction for as many of its
//   iterations as have 8 references together; others with more than 8 are several.
// - An instruction that the one before cannot lead to is an interrupt's or a fault's first. When
// the
//   one before did not make the references that it must make, it faulted and is left out; it comes
//   again. An instruction that is at once executed again without cause was started anew: left out.
//   After an indirect jump or a return anything may follow: there symbols tell interrupts. What the
//   processor itself refers to as it enters a handler tells them everywhere; it is left out.
// - A branch before an interrupt counts as not taken.
// - References to devices' registers are left out; an instruction that makes one becomes a static
//   instruction of its own, of class serializing.
// - A reference across pages becomes two. The stream has the physical address of the first; the
//   second page's is where it was seen last, or else a guess.
// - Calls of the kernel's copy routines (copy_routines.cpp) become CopyCalls where what they loaded
//   and stored are two regions of one length (a fill: stored one region). An interrupted call
//   counts as far as it had stored.
ConvertSummary convert(const std::string& input, const ConvertOptions& options);

// Of a stream in memory; `name` stands in errors.
ConvertSummary convert(std::span<const std::uint8_t> stream, const std::string& name,
                       const ConvertOptions& options);

}  // namespace bcisim
