#include "convert/machine_code.hpp"

#include <Zydis/Zydis.h>

#include <array>

namespace bcisim {

namespace {

constexpr std::uint64_t bit(unsigned number) {
  return std::uint64_t{1} << number;
}

// The mask of a register, 0 for the instruction pointer.
std::uint64_t mask_of(ZydisRegister name) {
  if (name == ZYDIS_REGISTER_NONE) return 0;
  // -1 where it has none, which is out of every range below.
  const auto id = static_cast<unsigned char>(
      ZydisRegisterGetId(ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name)));
  switch (ZydisRegisterGetClass(name)) {
    case ZYDIS_REGCLASS_GPR8:
    case ZYDIS_REGCLASS_GPR16:
    case ZYDIS_REGCLASS_GPR32:
    case ZYDIS_REGCLASS_GPR64: return id < 16 ? bit(id) : 0;
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM: return id < 32 ? bit(register_vectors + id) : 0;
    case ZYDIS_REGCLASS_FLAGS: return bit(register_flags);
    case ZYDIS_REGCLASS_IP: return 0;
    default: return bit(register_others);
  }
}

bool is_partial(ZydisRegister name) {
  const ZydisRegisterClass kind = ZydisRegisterGetClass(name);
  return kind == ZYDIS_REGCLASS_GPR8 || kind == ZYDIS_REGCLASS_GPR16;
}

bool is_vector_or_x87(ZydisRegister name) {
  switch (ZydisRegisterGetClass(name)) {
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX:
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
    case ZYDIS_REGCLASS_MASK: return true;
    default: return false;
  }
}

bool is_serializing(const ZydisDecodedInstruction& instruction,
                    const ZydisDecodedOperand* operands) {
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_SERIALIZE:
    case ZYDIS_CATEGORY_VTX: return true;
    default: break;
  }
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INVD:
    case ZYDIS_MNEMONIC_INVLPG:
    case ZYDIS_MNEMONIC_INVPCID:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_LGDT:
    case ZYDIS_MNEMONIC_LIDT:
    case ZYDIS_MNEMONIC_LLDT:
    case ZYDIS_MNEMONIC_LMSW:
    case ZYDIS_MNEMONIC_LTR:
    case ZYDIS_MNEMONIC_MWAIT:
    case ZYDIS_MNEMONIC_RSM:
    case ZYDIS_MNEMONIC_WBINVD:
    case ZYDIS_MNEMONIC_WRMSR:
    case ZYDIS_MNEMONIC_XSETBV: return true;
    case ZYDIS_MNEMONIC_MOV: {
      if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
      const ZydisRegisterClass kind = ZydisRegisterGetClass(operands[0].reg.value);
      return kind == ZYDIS_REGCLASS_CONTROL || kind == ZYDIS_REGCLASS_DEBUG;
    }
    default: return instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  }
}

// xchg is, without saying so, where it has memory.
bool is_locked(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands) {
  if ((instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0) return true;
  return instruction.mnemonic == ZYDIS_MNEMONIC_XCHG &&
         (operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY ||
          operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY);
}

InstructionClass class_of(const ZydisDecodedInstruction& instruction,
                          const ZydisDecodedOperand* operands) {
  if (is_serializing(instruction, operands)) return InstructionClass::serializing;
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_COND_BR: return InstructionClass::branch;
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_UNCOND_BR: return InstructionClass::jump;
    default: break;
  }
  if (is_locked(instruction, operands)) return InstructionClass::fence;
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_SFENCE: return InstructionClass::fence;
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV: return InstructionClass::divide;
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MUL:
    case ZYDIS_MNEMONIC_MULX: return InstructionClass::multiply;
    default: break;
  }
  if (instruction.meta.category == ZYDIS_CATEGORY_X87_ALU) return InstructionClass::floating;
  for (unsigned i = 0; i < instruction.operand_count; ++i)
    if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER && is_vector_or_x87(operands[i].reg.value))
      return InstructionClass::floating;
  return InstructionClass::simple;
}

bool clears_register(const ZydisDecodedInstruction& instruction,
                     const ZydisDecodedOperand* operands) {
  unsigned sources = 0;
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_XORPD:
    case ZYDIS_MNEMONIC_XORPS: break;
    case ZYDIS_MNEMONIC_VPXOR:
    case ZYDIS_MNEMONIC_VXORPD:
    case ZYDIS_MNEMONIC_VXORPS: sources = 1; break;
    default: return false;
  }
  const ZydisDecodedOperand &one = operands[sources], &other = operands[sources + 1];
  return one.type == ZYDIS_OPERAND_TYPE_REGISTER && other.type == ZYDIS_OPERAND_TYPE_REGISTER &&
         one.reg.value == other.reg.value && !is_partial(one.reg.value);
}

void add_register(StaticInstruction& to, const ZydisDecodedOperand& operand, bool clears) {
  const std::uint64_t mask = mask_of(operand.reg.value);
  const unsigned actions = operand.actions;
  const bool is_flags = ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_FLAGS;
  const bool writes = (actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  const bool keeps =
      writes && ((actions & ZYDIS_OPERAND_ACTION_CONDWRITE) != 0 || is_partial(operand.reg.value));
  if (writes) to.writes |= mask;
  if (clears && !is_flags) return;
  if ((actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 || keeps) to.reads |= mask;
}

// What stack and string instructions add to their address registers and take off their counter.
std::uint64_t steps_of(const ZydisDecodedInstruction& instruction,
                       const ZydisDecodedOperand* operands) {
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_POP:
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_STRINGOP: break;
    default: return 0;
  }
  std::uint64_t stepped = 0, loaded = 0;
  for (unsigned i = 0; i < instruction.operand_count; ++i) {
    if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    const ZydisRegister name =
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operands[i].reg.value);
    const bool is_address = name == ZYDIS_REGISTER_RSP || name == ZYDIS_REGISTER_RSI ||
                            name == ZYDIS_REGISTER_RDI || name == ZYDIS_REGISTER_RCX;
    if (!is_address) continue;
    const bool is_implied = operands[i].visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
    const bool writes = (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    if (writes) (is_implied ? stepped : loaded) |= mask_of(name);  // "pop rsp" loads it
  }
  return stepped & ~loaded;
}

void add_memory(MachineCode& to, const ZydisDecodedInstruction& instruction,
                const ZydisDecodedOperand& operand) {
  to.instruction.reads |= mask_of(operand.mem.base) | mask_of(operand.mem.index);
  if (operand.mem.type != ZYDIS_MEMOP_TYPE_MEM) return;
  if (operand.mem.base == ZYDIS_REGISTER_RSP || operand.mem.base == ZYDIS_REGISTER_RIP ||
      operand.mem.segment == ZYDIS_REGISTER_GS || operand.mem.segment == ZYDIS_REGISTER_FS)
    to.refers_aside = true;
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_CLDEMOTE:
    case ZYDIS_CATEGORY_CLFLUSHOPT:
    case ZYDIS_CATEGORY_CLWB:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_MISC:
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_PREFETCH:
    case ZYDIS_CATEGORY_PREFETCHWT1:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT: return;
    default: break;
  }
  if (to.instruction.kind == InstructionClass::serializing) return;
  // What a string instruction does is conditional: an iteration of it is not.
  const bool repeats = to.flow == Flow::repeated;
  if ((operand.actions & (repeats ? ZYDIS_OPERAND_ACTION_MASK_READ : ZYDIS_OPERAND_ACTION_READ)) !=
      0)
    to.must_load = true;
  if ((operand.actions &
       (repeats ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_WRITE)) != 0)
    to.must_store = true;
}

void add_flow(MachineCode& to, const ZydisDecodedInstruction& instruction,
              const ZydisDecodedOperand* operands) {
  constexpr ZydisInstructionAttributes repeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  const bool is_transfer = instruction.meta.category == ZYDIS_CATEGORY_CALL ||
                           instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
                           instruction.meta.category == ZYDIS_CATEGORY_COND_BR;
  to.is_call = instruction.meta.category == ZYDIS_CATEGORY_CALL;
  if (is_transfer && operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
      operands[0].imm.is_relative != 0) {
    to.flow = to.instruction.kind == InstructionClass::branch ? Flow::branch : Flow::direct;
    ZydisCalcAbsoluteAddress(&instruction, &operands[0], to.instruction.address, &to.target);
    return;
  }
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_UNCOND_BR: to.flow = Flow::anywhere; return;
    case ZYDIS_CATEGORY_INTERRUPT:
      to.flow = instruction.mnemonic == ZYDIS_MNEMONIC_INT ? Flow::anywhere : Flow::straight;
      return;
    default: break;
  }
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_RSM: to.flow = Flow::anywhere; return;
    default: break;
  }
  if ((instruction.attributes & repeats) != 0) to.flow = Flow::repeated;
}

}  // namespace

MachineCode decode_machine_code(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return made;
  }();
  MachineCode code;
  code.instruction.address = address;
  code.instruction.bytes = static_cast<std::uint8_t>(bytes.size());
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes.data(), bytes.size(), &instruction,
                                         operands.data())))
    return code;
  code.known = true;
  code.instruction.kind = class_of(instruction, operands.data());
  add_flow(code, instruction, operands.data());
  const bool clears = clears_register(instruction, operands.data());
  for (unsigned i = 0; i < instruction.operand_count; ++i) {
    if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER)
      add_register(code.instruction, operands[i], clears);
    if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) add_memory(code, instruction, operands[i]);
  }
  code.instruction.steps =
      steps_of(instruction, operands.data()) & code.instruction.reads & code.instruction.writes;
  return code;
}

}  // namespace bcisim
