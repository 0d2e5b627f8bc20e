/* The checksum of a packet: over all its words but its own, so that damage is noticed whatever the
 * network's own sums covered (a virtual interface leaves UDP's to be filled in by hardware). */
#ifndef HAUL_ATOMIC_WIRE_CHECKSUM_H
#define HAUL_ATOMIC_WIRE_CHECKSUM_H

#include "atomic/wire/packet.h"

SERVE_INLINE __u64 wire_mix(__u64 sum, __u64 word) {
  /* Both steps are bijections of `sum` and of `word`: one wrong word is always noticed. */
  sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
  return sum ^ (sum >> 32);
}

/* Of a packet with this many operations. Nothing is read behind `limit`. */
SERVE_INLINE __u64 wire_checksum(const void* packet, const void* limit, __u32 operations) {
  const __u64* words = (const __u64*)packet;
  const __u32 count = 6 + 4 * operations;
  __u64 sum = 0x6861756c; /* not 0: a packet of zeros must not be right */
  for (__u32 i = 0; i < 6 + 4 * WIRE_MAX_OPERATIONS; ++i) {
    if (i >= count || (const void*)(words + i + 1) > limit) break;
    if (i != 1) sum = wire_mix(sum, words[i]);
  }
  return sum;
}

#endif
