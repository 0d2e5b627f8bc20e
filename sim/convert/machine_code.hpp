// What an instruction of x86-64 does, from its machine code.
#pragma once

#include <cstdint>
#include <span>

#include "format/instruction.hpp"

namespace bcisim {

// How an instruction may be followed.
enum class Flow : std::uint8_t {
  straight,  // by the one behind it
  repeated,  // a string instruction with a rep prefix: by itself or by the one behind it
  branch,    // conditional: by the one behind it or by its target
  direct,    // a jump or a call: by its target
  anywhere   // an indirect jump or call, a return, a change between user and kernel
};

struct MachineCode {
  // Without physical page. Masks: a write of 8 or 16 bits keeps the rest of its register, so it is
  // a read of it, too; a write that depends on a condition likewise. Instructions that clear a
  // register by xor or sub with itself do not read it. Locked instructions, xchg with
  // memory among them, are fences.
  StaticInstruction instruction;
  Flow flow = Flow::straight;
  bool is_call = false;
  std::uint64_t target = 0;  // branch, direct
  // It cannot complete without loading, without storing.
  bool must_load = false, must_store = false;
  // Its references are to the stack (push, call, [rsp + 8]), by gs or fs, or relative to its own
  // address: they are no part of what a copy routine copies.
  bool refers_aside = false;
  bool known = false;  // false: no instruction; taken for one that does nothing
};

MachineCode decode_machine_code(std::uint64_t address, std::span<const std::uint8_t> bytes);

}  // namespace bcisim
