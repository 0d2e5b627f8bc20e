// Between the C ABI's operations and those of the wire.
#pragma once

#include <haul/atomic.h>

#include "atomic/wire/packet.h"
#include "base/error.hpp"

namespace haul::atomics {

inline wire_operation to_wire(const haul_atomic_operation& from) noexcept {
  wire_operation to{};
  to.code = from.code;
  to.width = from.width;
  to.flags = from.flags;
  to.stamp = static_cast<__u32>(from.token);
  to.address = from.address;
  to.operand = from.operand;
  to.compare = from.compare;
  return to;
}

// `result` is what a peer has written: any number, and so no wire_result.
inline Code code_of(unsigned result) noexcept {
  switch (result) {
    case WIRE_DONE: return Code::ok;
    case WIRE_OUTSIDE: return Code::fault;
    case WIRE_STALE: return Code::stale;
    case WIRE_SKIPPED:
    case WIRE_BUSY: return Code::again;
    case WIRE_UNALIGNED:
    case WIRE_UNKNOWN: break;
  }
  return Code::invalid;
}

// What became of an operation whose packet went as `packet` says.
inline void take_answer(const wire_operation& from, Code packet,
                        haul_atomic_operation* to) noexcept {
  const Code code = packet == Code::ok ? code_of(from.result) : packet;
  to->status = static_cast<std::int32_t>(code);
  to->old = code == Code::ok ? from.operand : 0;
}

}  // namespace haul::atomics
