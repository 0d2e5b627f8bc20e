/* haul.h: the public face of haul, in C11. It moves bulk memory without stalling the program that asked.
 *
 *   haul_ticket t = haul_copy(dst, src, len);   // returns at once; a dedicated core moves the bytes
 *   compute();
 *   haul_wait(t);                               // every byte of dst is visible now; src may be reused
 *
 * Conventions, for every function below unless its comment says otherwise:
 *  - Return: 0 (or a count) on success, a negative HAUL_E* on failure. errno is neither read nor set.
 *    haul_last_error() gives the calling thread a sentence with cause and remedy.
 *  - Threads: any thread may call at any time, with tickets of any thread.
 *  - Signals: a call made from a signal handler that interrupted a haul call of the same thread runs the copy
 *    inline. From other handlers haul_copy, haul_fill, haul_submit and haul_test are safe once the thread has submitted before.
 *  - Memory: a range that is not mapped raises SIGSEGV as memcpy would, perhaps later and on haul's thread, unless
 *    HAUL_CHECKED is set. Source and destination must stay valid until the ticket is done.
 */
#ifndef HAUL_HAUL_H
#define HAUL_HAUL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HAUL_VERSION_MAJOR 0
#define HAUL_VERSION_MINOR 1
#define HAUL_VERSION_PATCH 0

#if defined(__GNUC__)
#define HAUL_API __attribute__((visibility("default")))
#else
#define HAUL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ---------------------------------------------------------------------------------------------- */

/* Every failure is one of these. The numbers are part of the ABI. */
enum {
  HAUL_OK = 0,
  HAUL_EINVAL = -1,    /* an argument is wrong: NULL, overflow, unknown flag, a ticket that is none */
  HAUL_EAGAIN = -2,    /* the ring or the completion queue is full: wait or reap, then submit again */
  HAUL_EFAULT = -3,    /* part of a checked range is not accessible */
  HAUL_ENOMEM = -4,    /* memory or descriptors are exhausted */
  HAUL_ESTALE = -5,    /* a ticket of another process, or one whose failure was forgotten */
  HAUL_EPERM = -6,     /* the kernel refuses access to the peer's memory */
  HAUL_EPEER = -7,     /* the peer process is gone */
  HAUL_ENOTSUP = -8,   /* no engine here can do this */
  HAUL_ETIMEDOUT = -9, /* the time was up; the request goes on */
  HAUL_EIO = -10,      /* the engine failed and no other could take over */
  HAUL_ECLOSED = -11   /* haul_shutdown() was called, or the space was closed */
};

/* One short English phrase for a HAUL_E* code. Never NULL, static storage; async-signal-safe. */
HAUL_API const char *haul_strerror(int code);

/* The sentence (cause and remedy) of the calling thread's latest failure, "" before the first. Valid until the
 * thread's next failing call. */
HAUL_API const char *haul_last_error(void);

/* "0.1.0": the version of the library loaded, which may be newer than HAUL_VERSION_*. Static storage. */
HAUL_API const char *haul_version(void);

/* ---- requests -------------------------------------------------------------------------------------------- */

/* An address space. 0 is this process; others come from haul_space_open(). */
typedef uint32_t haul_space;
#define HAUL_SPACE_SELF 0u

/* {space, address, length in bytes}. The address is one of that space. */
typedef struct haul_extent {
  haul_space space;
  uint32_t reserved; /* 0 */
  void *address;
  size_t length;
} haul_extent;

/* What a ticket names: 16 bytes, passed by value. {0, 0} is done. Tickets do not cross processes. */
typedef struct haul_ticket {
  uint64_t where;
  uint64_t tenancy;
} haul_ticket;

typedef enum haul_operation { HAUL_OP_COPY = 0, HAUL_OP_FILL = 1 } haul_operation;

/* Cache affinity of one side of a copy (paper 003, III-B). */
typedef enum haul_affinity {
  HAUL_CACHEABLE = 0,     /* brought into the cache as it is accessed */
  HAUL_NON_CACHEABLE = 1, /* not brought in, and evicted where it was cached */
  HAUL_NEUTRAL = 2        /* nothing new brought in, what is cached stays; best effort on CPUs */
} haul_affinity;

/* Request flags. Unknown bits are HAUL_EINVAL. */
enum {
  HAUL_FENCE = 1u << 0,    /* starts only after every earlier request of this thread has finished */
  HAUL_CHECKED = 1u << 1,  /* an inaccessible range makes the ticket report HAUL_EFAULT instead of SIGSEGV */
  HAUL_NONBLOCK = 1u << 2, /* ring full: HAUL_EAGAIN instead of copying inline */
  HAUL_COMPLETE = 1u << 3, /* post an entry to this thread's completion queue */
  HAUL_INLINE = 1u << 4,   /* the caller's thread copies, now (scheme SCNI) */
  HAUL_DEDICATED = 1u << 5 /* do not copy on the caller's thread while a dedicated core can (scheme MCNI) */
};

/* What haul_reap() hands back. */
typedef struct haul_completion {
  haul_ticket ticket;
  uint64_t user_data;
  uint64_t good_bytes; /* bytes moved, counted from the front; all of them when status is 0 */
  int32_t status;      /* 0 or a HAUL_E* */
  uint32_t reserved;
} haul_completion;

/* Runs inside haul_reap(), on the reaping thread, never on a mover. May submit. */
typedef void (*haul_callback)(const haul_completion *completion, void *context);

/* A request in full. Zero it, set `size`, fill what is needed (haul_request_copy() and haul_request_fill() do).
 * It may be reused as soon as haul_submit() returns; so may the vectors. */
typedef struct haul_request {
  uint32_t size;         /* sizeof(haul_request): lets the struct grow */
  uint8_t operation;     /* haul_operation */
  uint8_t dst_affinity;  /* haul_affinity */
  uint8_t src_affinity;  /* haul_affinity */
  uint8_t pattern_bytes; /* fill: 1, 2, 4 or 8 */
  uint32_t flags;
  uint32_t reserved;              /* 0 */
  haul_extent dst;                /* used when dst_vector is NULL */
  haul_extent src;                /* copy: used when src_vector is NULL */
  const haul_extent *dst_vector;  /* or: dst_count extents of one space, filled in order */
  const haul_extent *src_vector;  /* the same total length; cut wherever you like */
  uint32_t dst_count, src_count;  /* 1 to 1024 */
  uint64_t pattern;               /* fill: the low pattern_bytes bytes, repeated from the first byte of dst */
  uint64_t *notify;               /* optional, 8-byte aligned: set to notify_value after the data (004, 2.2) */
  uint64_t notify_value;
  uint64_t user_data;             /* handed back in the completion */
  haul_callback callback;         /* optional, needs HAUL_COMPLETE */
  void *callback_context;
} haul_request;

static inline haul_request haul_request_copy(void *dst, const void *src, size_t len) {
  haul_request r;
  memset(&r, 0, sizeof r);
  r.size = (uint32_t)sizeof r;
  r.dst.address = dst;
  r.dst.length = len;
  r.src.address = (void *)(uintptr_t)src;
  r.src.length = len;
  return r;
}

static inline haul_request haul_request_fill(void *dst, uint64_t pattern, uint8_t pattern_bytes, size_t len) {
  haul_request r;
  memset(&r, 0, sizeof r);
  r.size = (uint32_t)sizeof r;
  r.operation = HAUL_OP_FILL;
  r.pattern_bytes = pattern_bytes;
  r.pattern = pattern;
  r.dst.address = dst;
  r.dst.length = len;
  return r;
}

/* Copies len bytes; memmove semantics (the ranges may overlap). Returns in tens of nanoseconds when the plan gives
 * the copy to a dedicated core; below a calibrated size it copies before returning. Requests are unordered with
 * each other. A wrong argument gives a failed ticket: haul_test() and haul_wait() on it return the error. Never blocks, but a full ring
 * makes it copy inline. (Papers: 000 III-C, 003 III.) */
HAUL_API haul_ticket haul_copy(void *dst, const void *src, size_t len);

/* Fills len bytes with a pattern of pattern_bytes (1, 2, 4 or 8), beginning with its low byte at dst. Otherwise as haul_copy. (003: BLKINIT.) */
HAUL_API haul_ticket haul_fill(void *dst, uint64_t pattern, size_t pattern_bytes, size_t len);

/* Submits count requests in order; tickets[i] is request i's (tickets may be NULL with HAUL_COMPLETE or notify).
 * Returns how many were taken: fewer than count if one was refused, and then haul_last_error() says why; a negative HAUL_E* if the first was. */
HAUL_API int haul_submit(const haul_request *requests, size_t count, haul_ticket *tickets);

/* ---- tickets --------------------------------------------------------------------------------------------- */

/* 1: done, every byte visible. 0: pending. Negative: it failed (observing it lets haul forget it). Never blocks, never helps. About 3 ns. */
HAUL_API int haul_test(haul_ticket ticket);

/* Returns 0 when every byte is visible, or the request's error. Helps: it copies chunks nobody has begun. Blocks. */
HAUL_API int haul_wait(haul_ticket ticket);

/* As haul_wait, at most timeout_ns nanoseconds (a chunk it has begun to copy itself is finished first). HAUL_ETIMEDOUT: still going on. */
HAUL_API int haul_wait_for(haul_ticket ticket, uint64_t timeout_ns);

/* Waits for bytes [offset, offset + len) of the request only; their blocks are moved first. 0: they are visible. */
HAUL_API int haul_wait_range(haul_ticket ticket, size_t offset, size_t len);

/* 1 if bytes [offset, offset + len) are visible, 0 if not yet, or the request's error. Never blocks. */
HAUL_API int haul_test_range(haul_ticket ticket, size_t offset, size_t len);

/* *good_bytes: how many bytes from the front are visible now (block grain). Returns as haul_test, but does not count as observing a failure. */
HAUL_API int haul_progress(haul_ticket ticket, size_t *good_bytes);

/* Waits for everything the calling thread has submitted. 0, or the first error among requests still unobserved that it waited for. */
HAUL_API int haul_drain(void);

/* ---- completion queue (one per thread; paper 000 III-B.2) -------------------------------------------------- */

/* Takes up to max entries (max >= 1) of the calling thread's queue, runs their callbacks, returns how many. Never blocks.
 * Counts as observing their tickets. The queue holds 1024; submits with HAUL_COMPLETE beyond that get HAUL_EAGAIN. */
HAUL_API int haul_reap(haul_completion *entries, size_t max);

/* A descriptor for poll/epoll that becomes readable once after haul_reap_arm() when an entry arrives. Owned by haul: do not
 * close it; closed when the thread exits. Returns the descriptor or a negative HAUL_E*. */
HAUL_API int haul_reap_eventfd(void);

/* Arms the descriptor (and clears it). Returns 1 if entries wait already (reap; the descriptor is not armed), else 0. */
HAUL_API int haul_reap_arm(void);

/* ---- spaces ------------------------------------------------------------------------------------------------ */

/* Opens another process's memory (needs the rights of ptrace). Probes with a real transfer of the kernel's making: HAUL_EPERM if refused,
 * HAUL_EPEER if there is no such process. At most 255 spaces are open at once. */
HAUL_API int haul_space_open(int pid, haul_space *space);

/* Closes it; requests in flight finish or fail with HAUL_ECLOSED. Closing HAUL_SPACE_SELF or twice is HAUL_EINVAL. */
HAUL_API int haul_space_close(haul_space space);

/* ---- plans and state --------------------------------------------------------------------------------------- */

#define HAUL_PLAN_REASONS 8

/* What the planner would do with a request now, and why. */
typedef struct haul_plan {
  uint32_t size;   /* set to sizeof(haul_plan) by the caller */
  uint32_t chunks; /* pieces handed to the engine */
  uint64_t chunk_bytes;
  uint64_t inline_below_bytes; /* copies below are inline, in the mover's present state */
  char scheme[8];              /* SCNI, MCNI, SCI, MCI (paper 000) */
  char mover[16];              /* caller, thread */
  char engine[16];             /* cpu, cma, fault */
  uint32_t reason_count;
  uint32_t reserved;
  char reasons[HAUL_PLAN_REASONS][192]; /* one sentence each, the decisive one first */
} haul_plan;

/* Plans without submitting. Reads no user memory but to probe whether the source is cached. */
HAUL_API int haul_explain(const haul_request *request, haul_plan *plan);

/* One engine as `haul info` shows it. */
typedef struct haul_engine_info {
  uint32_t size; /* set by the caller */
  uint32_t available;
  char name[16];
  char spaces[64];  /* what it reaches, in words */
  char status[192]; /* "ready", or why not and what to do about it */
  uint64_t chunks, bytes; /* moved so far by this process */
} haul_engine_info;

/* Engine number index; HAUL_EINVAL past the last. */
HAUL_API int haul_engine(unsigned index, haul_engine_info *info);

/* This process's movers and counters. */
typedef struct haul_state {
  uint32_t size; /* set by the caller */
  uint32_t mover_state;   /* 0 none yet, 1 awake, 2 asleep, 3 core leased by another process, 4 impossible here */
  int32_t mover_cpu;      /* the leased core, -1 without */
  uint32_t threads;       /* rings in use */
  uint64_t submitted, inlined, dedicated; /* requests so far: all, copied by the caller, given to a mover */
  uint64_t helped_chunks, moved_chunks;   /* chunks copied by waiters, by movers */
  uint64_t failed, unobserved;            /* requests that failed; failures nobody has looked at */
  uint64_t round_trip_ns;                 /* between caller and mover core, 0 before it was measured */
  char mover_status[192];                 /* one sentence */
} haul_state;

HAUL_API int haul_query(haul_state *state);

/* Wakes (or starts) the mover ahead of a burst, so that the next copies go to it. Returns 0, or why there is no mover. One system call at most while it sleeps. */
HAUL_API int haul_wake(void);

/* Calibrates in the foreground (about two seconds) and stores the figures. progress (optional) is called with 0 to 100 on the calling thread. */
HAUL_API int haul_tune(void (*progress)(int percent, void *context), void *context);

/* Finishes everything in flight, stops the movers, gives the core back. Later submits return HAUL_ECLOSED; tickets stay readable. Idempotent. */
HAUL_API int haul_shutdown(void);

#ifdef __cplusplus
}
#endif

#endif /* HAUL_HAUL_H */
