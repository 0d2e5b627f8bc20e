/* What a responder remembers: windows, sessions, results; and what it counts. wire/serve.h says how
 * the tables are used; a host responder has them in memory, an XDP program in BPF maps. */
#ifndef HAUL_ATOMIC_WIRE_TABLES_H
#define HAUL_ATOMIC_WIRE_TABLES_H

#include "atomic/wire/packet.h"

/* What is counted; the order is that of the statistics. */
enum serve_event {
  SERVED_PACKETS,
  SERVED_OPERATIONS,
  SERVED_HELLOS,
  REPLAYED,      /* a duplicate: answered from the table */
  DROPPED_SHORT, /* too short for what it says it holds, or of a length that no packet has */
  DROPPED_MAGIC,
  DROPPED_CHECKSUM,
  DROPPED_OLD,       /* a sequence that its client has had answered long ago */
  DROPPED_IN_FLIGHT, /* a duplicate of what is being executed at this moment */
  REFUSED_VERSION,
  REFUSED_MALFORMED,
  REFUSED_WINDOW, /* no such window, or a wrong key */
  REFUSED_SESSION,
  REFUSED_FULL,
  REFUSED_TAKEN,
  REFUSED_OPERATIONS, /* operations: unaligned, outside, unknown */
  REFUSED_STALE,      /* operations with an older stamp than their word's */
  PASSED_OTHER,       /* xdp: left to the kernel: IPv6, VLAN, fragments, IP options on our port */
  SERVE_EVENTS
};

struct window_entry {
  __u64 key;     /* 0: no window here */
  __u64 address; /* in its owner */
  __u64 bytes;
};

struct session_entry {
  __u64 id;          /* 0: free; ~0: changes hands */
  __u64 source;      /* address and port of the client */
  __u32 generation;  /* counts the sessions that have had this slot */
  __u32 last_used_s; /* about seconds */
};

/* state: {sequence 32 | generation 30 | phase 2}. */
struct result_entry {
  __u64 state;
  __u64 old[WIRE_MAX_OPERATIONS];
  __u8 result[WIRE_MAX_OPERATIONS];
  __u64 count; /* of operations */
};
enum { PHASE_EMPTY = 0, PHASE_RUNNING = 1, PHASE_DONE = 2 };

enum { SESSION_IDLE_S = 60 /* a slot unused for so long may be given to another client */ };

#endif
