// What a trace says of instructions: decoded, once for each place in a program (static) and once
// for each execution (dynamic), in the order in which one processor executed them.
#pragma once

#include <cstdint>

namespace bcisim {

// What executing it takes, memory apart; latency_of() in model/parameters.hpp has the cycles.
enum class InstructionClass : std::uint8_t {
  simple,  // integers, moves, address arithmetic, nothing at all
  multiply,
  divide,
  floating,    // x87 and vectors
  branch,      // conditional: predicted
  jump,        // any other change of the instruction pointer: calls, returns, jumps
  fence,       // waits for what is older, copies included: fences, locked instructions
  serializing  // likewise, and what is younger is fetched only then: entries to the kernel and
               // returns from it, writes of control registers, cpuid, I/O
};
inline constexpr unsigned instruction_classes = 8;

// Registers are bits of a mask: the 16 general ones in x86 order (rax 0, rcx 1, ... r15), flags,
// the vector registers 0 to 31, and one bit for all others (x87, mask, segment, control registers).
inline constexpr unsigned register_flags = 16, register_vectors = 17, register_others = 49,
                          registers = 50;

// An instruction as it stands in a program.
struct StaticInstruction {
  std::uint64_t address = 0;            // virtual
  std::uint64_t physical_page = 0;      // physical address of its first byte / 4096
  std::uint64_t reads = 0, writes = 0;  // register masks; those that form addresses are read, too
  std::uint8_t bytes = 0;               // its length, 1 to 15
  InstructionClass kind = InstructionClass::simple;
  // Registers, of those both read and written, that a stack or string instruction steps by a
  // constant: they are ready before what it loads is.
  std::uint64_t steps = 0;
};

// A reference to memory. One that crosses a page comes as two references.
struct Reference {
  std::uint64_t address = 0;   // virtual
  std::uint64_t physical = 0;  // of its first byte
  std::uint16_t bytes = 0;     // 1 to 512
  bool is_store = false;
};

// An instruction as it was executed. One with many references (rep movs, fxsave) comes as several,
// each of at most most_references.
struct DynamicInstruction {
  std::uint32_t what = 0;             // index of its StaticInstruction
  std::uint32_t first_reference = 0;  // index into Chunk::references
  std::uint8_t references = 0;        // loads before stores
  bool taken = false;                 // branch: the next instruction is not the one that follows it
};
inline constexpr unsigned most_references = 8;

}  // namespace bcisim
