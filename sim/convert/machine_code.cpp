#include "convert/machine_code.hpp"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <initializer_list>

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

template <class Value>
bool is_one_of(Value value, std::initializer_list<Value> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool is_partial(ZydisRegister name) {
  return is_one_of(ZydisRegisterGetClass(name), {ZYDIS_REGCLASS_GPR8, ZYDIS_REGCLASS_GPR16});
}

bool is_vector_or_x87(ZydisRegister name) {
  return is_one_of(ZydisRegisterGetClass(name),
                   {ZYDIS_REGCLASS_X87, ZYDIS_REGCLASS_MMX, ZYDIS_REGCLASS_XMM, ZYDIS_REGCLASS_YMM,
                    ZYDIS_REGCLASS_ZMM, ZYDIS_REGCLASS_MASK});
}

bool is_serializing(const ZydisDecodedInstruction& instruction,
                    const ZydisDecodedOperand* operands) {
  if (is_one_of(instruction.meta.category,
                {ZYDIS_CATEGORY_SYSCALL, ZYDIS_CATEGORY_SYSRET, ZYDIS_CATEGORY_INTERRUPT,
                 ZYDIS_CATEGORY_IO, ZYDIS_CATEGORY_IOSTRINGOP, ZYDIS_CATEGORY_SERIALIZE,
                 ZYDIS_CATEGORY_VTX}) ||
      is_one_of(
          instruction.mnemonic,
          {ZYDIS_MNEMONIC_CPUID, ZYDIS_MNEMONIC_HLT, ZYDIS_MNEMONIC_INVD, ZYDIS_MNEMONIC_INVLPG,
           ZYDIS_MNEMONIC_INVPCID, ZYDIS_MNEMONIC_IRET, ZYDIS_MNEMONIC_IRETD, ZYDIS_MNEMONIC_IRETQ,
           ZYDIS_MNEMONIC_LGDT, ZYDIS_MNEMONIC_LIDT, ZYDIS_MNEMONIC_LLDT, ZYDIS_MNEMONIC_LMSW,
           ZYDIS_MNEMONIC_LTR, ZYDIS_MNEMONIC_MWAIT, ZYDIS_MNEMONIC_RSM, ZYDIS_MNEMONIC_WBINVD,
           ZYDIS_MNEMONIC_WRMSR, ZYDIS_MNEMONIC_XSETBV}))
    return true;
  if (instruction.mnemonic != ZYDIS_MNEMONIC_MOV)
    return instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  return operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         is_one_of(ZydisRegisterGetClass(operands[0].reg.value),
                   {ZYDIS_REGCLASS_CONTROL, ZYDIS_REGCLASS_DEBUG});
}

// An xchg with memory locks though it has no prefix that says so.
bool is_locked(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands) {
  if ((instruction.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0) return true;
  return instruction.mnemonic == ZYDIS_MNEMONIC_XCHG &&
         (operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY ||
          operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY);
}

InstructionClass class_of(const ZydisDecodedInstruction& instruction,
                          const ZydisDecodedOperand* operands) {
  if (is_serializing(instruction, operands)) return InstructionClass::serializing;
  const ZydisInstructionCategory category = instruction.meta.category;
  const ZydisMnemonic mnemonic = instruction.mnemonic;
  if (category == ZYDIS_CATEGORY_COND_BR) return InstructionClass::branch;
  if (is_one_of(category, {ZYDIS_CATEGORY_CALL, ZYDIS_CATEGORY_RET, ZYDIS_CATEGORY_UNCOND_BR}))
    return InstructionClass::jump;
  if (is_locked(instruction, operands) ||
      is_one_of(mnemonic, {ZYDIS_MNEMONIC_LFENCE, ZYDIS_MNEMONIC_MFENCE, ZYDIS_MNEMONIC_SFENCE}))
    return InstructionClass::fence;
  if (is_one_of(mnemonic, {ZYDIS_MNEMONIC_DIV, ZYDIS_MNEMONIC_IDIV}))
    return InstructionClass::divide;
  if (is_one_of(mnemonic, {ZYDIS_MNEMONIC_IMUL, ZYDIS_MNEMONIC_MUL, ZYDIS_MNEMONIC_MULX}))
    return InstructionClass::multiply;
  if (category == ZYDIS_CATEGORY_X87_ALU) return InstructionClass::floating;
  for (unsigned i = 0; i < instruction.operand_count; ++i)
    if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER && is_vector_or_x87(operands[i].reg.value))
      return InstructionClass::floating;
  return InstructionClass::simple;
}

bool clears_register(const ZydisDecodedInstruction& instruction,
                     const ZydisDecodedOperand* operands) {
  const bool has_target = is_one_of(
      instruction.mnemonic, {ZYDIS_MNEMONIC_VPXOR, ZYDIS_MNEMONIC_VXORPD, ZYDIS_MNEMONIC_VXORPS});
  if (!has_target &&
      !is_one_of(instruction.mnemonic, {ZYDIS_MNEMONIC_PXOR, ZYDIS_MNEMONIC_SUB, ZYDIS_MNEMONIC_XOR,
                                        ZYDIS_MNEMONIC_XORPD, ZYDIS_MNEMONIC_XORPS}))
    return false;
  const unsigned sources = has_target ? 1 : 0;  // the first of its two sources
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
  if (!is_one_of(instruction.meta.category,
                 {ZYDIS_CATEGORY_CALL, ZYDIS_CATEGORY_POP, ZYDIS_CATEGORY_PUSH, ZYDIS_CATEGORY_RET,
                  ZYDIS_CATEGORY_STRINGOP}))
    return 0;
  std::uint64_t stepped = 0, loaded = 0;
  for (unsigned i = 0; i < instruction.operand_count; ++i) {
    if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    const ZydisRegister name =
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operands[i].reg.value);
    if (!is_one_of(
            name, {ZYDIS_REGISTER_RSP, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RCX}))
      continue;
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
  if (to.instruction.kind == InstructionClass::serializing ||
      is_one_of(
          instruction.meta.category,
          {ZYDIS_CATEGORY_CLDEMOTE, ZYDIS_CATEGORY_CLFLUSHOPT, ZYDIS_CATEGORY_CLWB,
           ZYDIS_CATEGORY_IO, ZYDIS_CATEGORY_IOSTRINGOP, ZYDIS_CATEGORY_MISC, ZYDIS_CATEGORY_NOP,
           ZYDIS_CATEGORY_PREFETCH, ZYDIS_CATEGORY_PREFETCHWT1, ZYDIS_CATEGORY_SYSTEM,
           ZYDIS_CATEGORY_WIDENOP, ZYDIS_CATEGORY_XSAVE, ZYDIS_CATEGORY_XSAVEOPT}))
    return;
  // Zydis calls what a repeated string instruction does conditional; an iteration of it is not.
  const bool repeats = to.flow == Flow::repeated;
  const unsigned reads = repeats ? ZYDIS_OPERAND_ACTION_MASK_READ : ZYDIS_OPERAND_ACTION_READ;
  const unsigned writes = repeats ? ZYDIS_OPERAND_ACTION_MASK_WRITE : ZYDIS_OPERAND_ACTION_WRITE;
  if ((operand.actions & reads) != 0) to.must_load = true;
  if ((operand.actions & writes) != 0) to.must_store = true;
}

void add_flow(MachineCode& to, const ZydisDecodedInstruction& instruction,
              const ZydisDecodedOperand* operands) {
  constexpr ZydisInstructionAttributes repeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  const ZydisInstructionCategory category = instruction.meta.category;
  to.is_call = category == ZYDIS_CATEGORY_CALL;
  if (is_one_of(category,
                {ZYDIS_CATEGORY_CALL, ZYDIS_CATEGORY_UNCOND_BR, ZYDIS_CATEGORY_COND_BR}) &&
      operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[0].imm.is_relative != 0) {
    to.flow = to.instruction.kind == InstructionClass::branch ? Flow::branch : Flow::direct;
    ZydisCalcAbsoluteAddress(&instruction, &operands[0], to.instruction.address, &to.target);
  } else if (is_one_of(category, {ZYDIS_CATEGORY_CALL, ZYDIS_CATEGORY_RET, ZYDIS_CATEGORY_SYSCALL,
                                  ZYDIS_CATEGORY_SYSRET, ZYDIS_CATEGORY_UNCOND_BR}) ||
             is_one_of(instruction.mnemonic,
                       {ZYDIS_MNEMONIC_INT, ZYDIS_MNEMONIC_IRET, ZYDIS_MNEMONIC_IRETD,
                        ZYDIS_MNEMONIC_IRETQ, ZYDIS_MNEMONIC_RSM})) {
    to.flow = Flow::anywhere;
  } else if (category != ZYDIS_CATEGORY_INTERRUPT && (instruction.attributes & repeats) != 0) {
    to.flow = Flow::repeated;
  }
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
