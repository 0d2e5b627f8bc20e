// What the operations are to do, said in the plainest way.
#pragma once

#include <cstdint>

#include "atomic/wire/packet.h"

namespace haul::atomics::test {

struct Outcome {
  std::uint64_t old, word;
};

inline Outcome model(unsigned code, std::uint64_t word, std::uint64_t operand,
                     std::uint64_t compare, std::uint64_t mask) {
  word &= mask;
  switch (code) {
    case WIRE_READ: return {word, word};
    case WIRE_WRITE: return {0, operand & mask};
    case WIRE_ADD: return {word, (word + operand) & mask};
    case WIRE_SWAP: return {word, operand & mask};
    case WIRE_CAS: return {word, word == (compare & mask) ? operand & mask : word};
    case WIRE_AND: return {word, word & operand & mask};
    case WIRE_OR: return {word, (word | operand) & mask};
    case WIRE_XOR: return {word, (word ^ operand) & mask};
    default: return {0, word};
  }
}

inline constexpr std::uint64_t samples[] = {0,
                                            1,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            0x100000000,
                                            0x0123456789abcdef,
                                            0x8000000000000000,
                                            0xffffffffffffffff};

}  // namespace haul::atomics::test
