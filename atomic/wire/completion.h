/* Where a client's XDP program leaves replies, and the client finds them without a system call: the
 * completion map, mapped by both.
 *
 * A connection has one slot; a reply of sequence s goes into its entry s % WIRE_RESULTS. The
 * program claims the entry (compare&swap of `state` to a newer sequence, FILLING), writes it, and
 * publishes it by a swap to DONE; the client reads the entry when its state is DONE of the sequence
 * that it awaits, and never writes one of a live session. A client that is about to sleep counts
 * `asleep` up and looks once more; the program publishes before it reads `asleep`. Both are
 * sequentially consistent, so either the client sees the reply, or the program sees the sleeper and
 * lets the packet go on to the socket at which that client sleeps. A slot changes hands when
 * `session` does: the new owner clears it, waits until no entry is FILLING, and then writes its own
 * number. */
#ifndef HAUL_ATOMIC_WIRE_COMPLETION_H
#define HAUL_ATOMIC_WIRE_COMPLETION_H

#include "atomic/wire/packet.h"

/* One packet's answer. state: {sequence 32 | phase 32}; 0 at first. The program claims the entry of
 * {sequence % WIRE_RESULTS} for a newer sequence, fills it in, and publishes it by a swap: a late
 * duplicate can never write into what is being read. */
struct completion_entry {
  __u64 state;
  __u8 status;
  __u8 count;
  __u16 repetition; /* which of the client's it answers */
  __u8 unused[4];
  __u8 result[WIRE_MAX_OPERATIONS];
  __u64 old[WIRE_MAX_OPERATIONS];
};
enum { COMPLETION_FILLING = 1, COMPLETION_DONE = 2 };

SERVE_INLINE __u64 completion_state(__u32 sequence, __u32 phase) {
  return (__u64)sequence << 32 | phase;
}

/* One session's. An element of the map, of whole pages. */
struct completion_slot {
  __u64 session; /* 0: nobody's */
  __u32 asleep;  /* not 0: the client sleeps at its socket, so let the packet go there, too */
  __u32 unused;
  struct completion_entry entries[WIRE_RESULTS];
};
enum { COMPLETION_SLOT_BYTES = 12288 };

#endif
