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
  // Path of a copy of the traced kernel's /proc/kallsyms. Empty: no calls of copy routines are
  // found.
  std::string symbols;
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
// - An instruction that the one before cannot lead to is the first of an interrupt's or a fault's
//   handler. When the one before did not make the references that it must make, it has faulted: it
//   is left out, since the processor executes it again. An instruction that is executed twice in a
//   row without a cause was restarted: its first execution is left out. After an indirect jump or a
//   return anything may follow; there the kernel's symbols tell where handlers begin. The
//   references that the processor itself makes as it enters a handler give it away everywhere;
//   these are left out, too.
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
