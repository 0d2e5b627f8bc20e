/* The packet of remote atomics, byte by byte (docs/design/atomic-wire.md): what a client asks and a
 * responder answers. In C for the BPF program, in C++ for all else.
 *
 * A reply has the length of its request and is written over it: header, then 0 to 16 operations.
 * All numbers are little-endian, whatever the host. One UDP payload is one packet.
 *
 * A client begins with a hello, whose reply names its slot in the responder's table of sessions; it
 * sends requests with growing sequence numbers, repeats each until it is answered, and ends with a
 * bye, for whose reply it does not wait. A packet may be lost, doubled, delayed or damaged at any
 * time: the checksum finds damage, and the pair {session, sequence} tells copies of one packet. */
#ifndef HAUL_ATOMIC_WIRE_PACKET_H
#define HAUL_ATOMIC_WIRE_PACKET_H

#include <linux/types.h>

#define SERVE_INLINE static inline __attribute__((always_inline))

enum {
  WIRE_MAGIC = 0x4c554148, /* "HAUL" as bytes */
  WIRE_VERSION = 1,
  WIRE_MAX_OPERATIONS = 16,
  /* A client has fewer than this many packets unanswered: the responder keeps so many results of
   * each (paper 002, III-B). A power of two. */
  WIRE_RESULTS = 64,
};

enum wire_kind {
  WIRE_REQUEST = 1,
  WIRE_HELLO = 2,   /* asks for a session; no operations */
  WIRE_BYE = 3,     /* ends it */
  WIRE_REPLY = 0x80 /* set in a reply to one of these */
};

/* Of a whole packet: nothing of it was executed unless this is WIRE_OK. */
enum wire_status {
  WIRE_OK = 0,
  WIRE_NO_WINDOW = 1,     /* no such window, or not its key */
  WIRE_NO_SESSION = 2,    /* the responder was restarted, or has forgotten an idle client */
  WIRE_FULL = 3,          /* no room for another client */
  WIRE_TAKEN = 4,         /* another client has this session's number */
  WIRE_OTHER_VERSION = 5, /* the responder speaks another version (header.version) */
  WIRE_MALFORMED = 6      /* an unknown kind, or a count that does not fit the length */
};

enum wire_code {
  WIRE_READ = 1,
  WIRE_WRITE = 2,
  WIRE_ADD = 3,  /* fetch&add */
  WIRE_SWAP = 4, /* fetch&write */
  WIRE_CAS = 5,  /* compare&swap */
  WIRE_AND = 6,
  WIRE_OR = 7,
  WIRE_XOR = 8
};

enum wire_flag {
  /* What follows is executed only if this one's old value equals its `compare`. */
  WIRE_LINK = 1,
  /* The word is a guarded one: {stamp 32, value 32}. An older stamp than the word's is refused, a
   * newer one replaces it; the operation acts on the value. */
  WIRE_GUARDED = 2
};

/* Of one operation. */
enum wire_result {
  WIRE_DONE = 0,
  WIRE_UNALIGNED = 1,
  WIRE_OUTSIDE = 2, /* not within the window */
  WIRE_UNKNOWN = 3, /* no such code, width or flag */
  WIRE_STALE = 4,   /* guarded, and the word has a newer stamp */
  WIRE_SKIPPED = 5, /* linked behind one that did not match */
  WIRE_BUSY = 6     /* guarded, and the word changed too often meanwhile: not executed */
};

struct wire_header { /* 48 bytes */
  __u32 magic;
  __u8 version;
  __u8 kind;
  __u8 count;     /* operations that follow */
  __u8 status;    /* 0 in a request */
  __u64 checksum; /* wire_checksum() of the packet's other words */
  __u64 session;  /* the client's number: random, so that nobody else can speak for it */
  __u32 slot;     /* where the responder keeps this session; its answer to WIRE_HELLO says so */
  __u32 sequence; /* counts the packets of a session, from 1 */
  __u32 window;
  __u32 cookie; /* the client's own, handed back: {repetition 16, connection 16} */
  __u64 key;    /* the window's */
};

struct wire_operation { /* 32 bytes */
  __u8 code;
  __u8 width; /* 4 or 8 bytes; a guarded word: 8 */
  __u8 flags;
  __u8 result;   /* 0 in a request */
  __u32 stamp;   /* guarded words only */
  __u64 address; /* in the owner's address space (paper 002, III-B: the triple's third part) */
  __u64 operand; /* what is added, written, and-ed...; in a reply: the old value (of a write: 0) */
  __u64 compare; /* compare&swap, and WIRE_LINK */
};

/* Kept the same in every version, so that versions can tell each other apart: magic, version, kind,
 * status, checksum. */

#endif
