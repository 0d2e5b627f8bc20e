/* What an operation means, whoever executes it: a responder's CPU (wire/serve.h) or a fabric's
 * provider (fabric/fabric_operation). In C for the BPF program. */
#ifndef HAUL_ATOMIC_WIRE_OPERATION_H
#define HAUL_ATOMIC_WIRE_OPERATION_H

#include "atomic/wire/packet.h"

/* WIRE_DONE, or why an operation at this offset of a window of so many bytes is refused. */
SERVE_INLINE enum wire_result refusal_of(const struct wire_operation* op, __u64 offset,
                                         __u64 window_bytes) {
  if (op->code < WIRE_READ || op->code > WIRE_XOR || (op->width != 4 && op->width != 8) ||
      (op->flags & ~(WIRE_LINK | WIRE_GUARDED)) || (op->flags & WIRE_GUARDED && op->width != 8)) {
    return WIRE_UNKNOWN;
  }
  if (offset & (op->width - 1u)) return WIRE_UNALIGNED;
  if (offset >= window_bytes || window_bytes - offset < op->width) return WIRE_OUTSIDE;
  return WIRE_DONE;
}

/* What an operation leaves where `old` was. Of narrower words the low bits count. */
SERVE_INLINE __u64 applied(__u64 old, __u8 code, __u64 operand, __u64 compare) {
  switch (code) {
    case WIRE_READ: return old;
    case WIRE_ADD: return old + operand;
    case WIRE_CAS: return old == compare ? operand : old;
    case WIRE_AND: return old & operand;
    case WIRE_OR: return old | operand;
    case WIRE_XOR: return old ^ operand;
    default: return operand; /* swap and write */
  }
}

/* Are the operations behind this executed one to be skipped? Compared is what the word can hold. */
SERVE_INLINE __u8 is_broken_link(const struct wire_operation* op) {
  const __u8 narrow = op->width == 4 || (op->flags & WIRE_GUARDED);
  const __u64 compare = narrow ? (__u32)op->compare : op->compare;
  return (op->flags & WIRE_LINK) && (op->result != WIRE_DONE || op->operand != compare);
}

#endif
