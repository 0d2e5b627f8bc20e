/* haul.h: the public face of haul, in C11. It moves bulk memory without stalling the program that
 * asked.
 *
 *   haul_ticket t = haul_copy(dst, src, len);  // a dedicated core copies
 *   compute();
 *   haul_wait(t);  // every byte of dst is visible; src may be reused
 *
 * Conventions, for every function below unless its comment says otherwise:
 *  - Return: 0 (or a count) on success, a negative HAUL_E* on failure. errno is neither read nor
 *    set. haul_last_error() then gives the calling thread one sentence with cause and remedy.
 *  - Units: lengths and offsets in bytes, times in nanoseconds.
 *  - Memory: source and destination must stay mapped and valid until the ticket is done or has
 *    failed. A range that is not mapped raises SIGSEGV as memcpy would, perhaps later and on one
 *    of haul's threads, unless HAUL_CHECKED is set. Bytes that the program changes while they
 *    are copied arrive in an unspecified mix of old and new.
 *
 * What a host program may rely on (tests/edges checks it, function by function). haul's own threads
 * are the movers, and helpers that calibrate and talk to the node's service.
 *  - Threads: any thread may call at any time, with tickets of any thread of the process, and from
 *    thread-specific destructors in any of their rounds. Each thread gets a ring (256 requests) and
 *    a completion queue (1024 entries) of its own when it first needs them; when it ends, they are
 *    free for other threads. Up to 16384 threads can have them at once (fewer where memory or
 *    addresses are limited); the requests of further threads run inline. main() may end with
 *    pthread_exit(): the process ends with the program's last thread and does not wait for haul's.
 *  - Cancellation: no function is a cancellation point. A pthread_cancel() that is pending, or
 *    arrives during a call, takes effect at the program's own next cancellation point. (A thread
 *    whose cancellation type is asynchronous must not call.)
 *  - Signals: haul installs no handler, and its threads block all signals but those that a fault
 *    raises. No call fails because a signal came, and none blocks signals while it waits: handlers
 *    run, and SIGTERM ends the process, during waits too. A handler may call a function whose
 *    comment says "async-signal-safe", and no other. haul_copy, haul_fill, haul_submit and
 *    haul_test are async-signal-safe once their thread has submitted before and haul_wake() has
 *    returned in this process. In a handler that interrupts a haul call of its own thread, requests
 *    may run inline, and HAUL_COMPLETE, or HAUL_FENCE behind unfinished requests, may be refused
 *    with HAUL_EAGAIN. Where haul_copy, haul_fill or haul_submit faults on the program's memory,
 *    the handler of that fault may leave by siglongjmp(); no handler may do so out of other
 *    functions, or on another signal.
 *  - Fork: what is in flight is finished before the process forks. fork() waits for it while it
 *    makes progress, and for HAUL_MOVER_PATIENCE_MS (5 s) when it makes none. haul holds no lock
 *    while the program's own fork handlers run. In the child, tickets from before the fork have
 *    ended, no mover runs until one is needed, completion queues are empty and their descriptors
 *    closed, and nothing is granted; entries that were not reaped are the parent's. What could not
 *    be waited for (a signal handler forks during a haul call of its thread, memory does not
 *    arrive, the service is stopped) goes on in the parent; in the child the first test or wait
 *    copies it in the child's own memory, or reports HAUL_EIO where that is impossible: shared
 *    memory, another process's memory, sides that overlap. vfork, posix_spawn and exec need no
 *    care; the child of a bare clone() starts from nothing.
 *  - Exit: exit() and haul_shutdown() finish what is in flight and stop haul's threads, with the
 *    same patience. What makes no progress (memory that does not arrive, a stopped service, a
 *    handler that holds a mover) they leave, and say so on standard error. Functions registered
 *    with atexit() may call before and after that. A kill at any instant leaves nothing behind.
 *  - Descriptors: haul's are close-on-exec and never 0 to 2. The program may close them (closefrom)
 *    or put files of its own at their numbers: before each use haul checks that a descriptor is
 *    still its own, and it neither reads, writes, polls, closes nor changes the program's. haul
 *    makes again what it has lost in this way, or says in a sentence what no longer works; copies
 *    within the process go on. (The check and the use are two steps: nothing helps against another
 *    thread's dup2() between them, or against one over a file that haul has open for an instant.)
 *  - Credentials: a copy from or to another process is made with the rights (user, group,
 *    capabilities) of the thread that submits it, and a copy of memory behind protection keys with
 *    the keys that this thread has opened: a thread whose rights or keys differ from the movers'
 *    makes such copies itself. The service serves the user that the process acts for: a process
 *    that acts for two (set-user-id) does without it, and one that changes its user leaves it.
 *  - Scheduling: haul's threads have the ordinary policy, whatever the policy of the thread that
 *    makes them, and stay on the CPUs that the process may use. Every wait sleeps in the end, a
 *    real-time thread's soon. A waiter copies chunks that nobody has begun, and waits for a chunk
 *    that a mover has begun: so it may be delayed by what keeps an ordinary thread from its CPU,
 *    namely threads of higher priority, or a control group's CPU quota (by up to its period).
 *  - Resources: haul takes memory, addresses and descriptors for each of the threads that use it at
 *    once: a ring is 244 KiB of addresses, populated as it is used. When a thread ends, its
 *    descriptor and its ring's memory but for one page are given back (four rings keep theirs for
 *    threads to come): at once, or, where its requests are still under way, after they have ended,
 *    when another thread comes or goes or one of haul's falls asleep. The addresses serve later
 *    threads. Where a limit (setrlimit, mlockall, seccomp, a control group) leaves no room for a
 *    ring, a thread or a descriptor, copies are made inline.
 *
 * "Paper 000" to "004" are named in docs/design/design.md.
 */
#ifndef HAUL_HAUL_H
#define HAUL_HAUL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define HAUL_API __attribute__((visibility("default")))
#else
#define HAUL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors ------------------------------------------------------------------------------- */

/* Every failure is one of these. The numbers are part of the ABI. */
enum {
  HAUL_OK = 0,         /* success */
  HAUL_EINVAL = -1,    /* an argument is wrong: NULL, overflow, unknown flag, bad ticket */
  HAUL_EAGAIN = -2,    /* full (ring, completion queue), or the mover core is leased: try later */
  HAUL_EFAULT = -3,    /* part of a range is not accessible (checked requests, and other spaces) */
  HAUL_ENOMEM = -4,    /* memory, descriptors, threads or spaces are exhausted */
  HAUL_ESTALE = -5,    /* a ticket of another process, or one whose failure is forgotten */
  HAUL_EPERM = -6,     /* the kernel refuses access (a peer's memory, the calibration file) */
  HAUL_EPEER = -7,     /* the peer process is gone */
  HAUL_ENOTSUP = -8,   /* no engine here can do this, or no mover can run here */
  HAUL_ETIMEDOUT = -9, /* the time ran out; the request goes on */
  HAUL_EIO = -10,      /* the engine failed and no other could take over */
  HAUL_ECLOSED = -11   /* haul_shutdown() was called, or the space is not open */
};

/* One short English phrase for a HAUL_E* code, and for any other number. Never NULL, static
 * storage. Async-signal-safe. */
HAUL_API const char* haul_strerror(int code);

/* The sentence of the calling thread's latest failing call of haul.h or atomic.h: its cause and a
 * remedy; "" before the first. Successful calls do not clear it. Never NULL; valid until the
 * thread's next failing call. */
HAUL_API const char* haul_last_error(void);

/* The version of the library that is loaded, "0.1.0"; it may be newer than HAUL_VERSION_*. Static
 * storage. Async-signal-safe. */
HAUL_API const char* haul_version(void);

/* The version of this header. */
#define HAUL_VERSION_MAJOR 0
#define HAUL_VERSION_MINOR 1
#define HAUL_VERSION_PATCH 0

/* ---- requests ----------------------------------------------------------------------------- */

/* An address space. 0 is this process; others come from haul_space_open() and its like. */
typedef uint32_t haul_space;
#define HAUL_SPACE_SELF 0u

/* Bytes [address, address + length) of a space. The address is one of that space. */
typedef struct haul_extent {
  haul_space space;
  uint32_t reserved; /* 0 */
  void* address;     /* any alignment; may be NULL where length is 0 */
  size_t length;     /* bytes; the range must lie below 2^56 */
} haul_extent;

/* A ticket names a request: 16 bytes, passed by value, nothing to free. {0, 0} is done. The members
 * are haul's own. A ticket stays valid for as long as the process lives: one whose slot was reused
 * means done, never another request's result. Tickets do not cross processes (a child of fork may
 * test its parent's; the child's mean nothing to the parent, which cannot tell them from its own).
 */
typedef struct haul_ticket {
  uint64_t where;
  uint64_t tenancy;
} haul_ticket;

/* What a request does. */
typedef enum haul_operation { HAUL_OP_COPY = 0, HAUL_OP_FILL = 1 } haul_operation;

/* Cache affinity of one side (paper 003, III-B). A hint: ignored below 256 bytes, where the sides
 * overlap, for checked requests and for other spaces. */
typedef enum haul_affinity {
  HAUL_CACHEABLE = 0,     /* brought into the cache as it is accessed */
  HAUL_NON_CACHEABLE = 1, /* not brought in, and evicted where it was cached */
  HAUL_NEUTRAL = 2        /* nothing new brought in, what is cached stays; best effort on CPUs,
                             as cacheable below 64 KiB */
} haul_affinity;

/* Request flags. Unknown bits are HAUL_EINVAL. */
enum {
  HAUL_FENCE = 1u << 0,    /* starts only after every earlier request of this thread has ended,
                              successfully or not; later requests do not wait for it */
  HAUL_CHECKED = 1u << 1,  /* an inaccessible range makes the ticket report HAUL_EFAULT instead of
                              raising SIGSEGV. The kernel copies, so a call costs system calls;
                              memory that it copies for nobody (memfd_secret, vvar, a device's) is
                              read by ordinary loads, at half the speed, unless source and
                              destination overlap upwards, or it is a peer's: then HAUL_EFAULT */
  HAUL_NONBLOCK = 1u << 2, /* ring full (256 requests unfinished), or no room for the vector:
                              HAUL_EAGAIN, whatever its size, instead of running inline */
  HAUL_COMPLETE = 1u << 3, /* post an entry to this thread's completion queue, also on failure */
  HAUL_INLINE = 1u << 4,   /* the caller's thread moves the bytes, now (scheme SCNI). Excludes
                              HAUL_DEDICATED */
  HAUL_DEDICATED = 1u << 5 /* goes to a dedicated core whatever its size (scheme MCNI), unless there
                              is none or the ring is full. A waiter may still help */
};

/* What haul_reap() hands back. */
typedef struct haul_completion {
  haul_ticket ticket;  /* done; not distinct for requests that ran inline: use user_data */
  uint64_t user_data;  /* the request's */
  uint64_t good_bytes; /* bytes moved, counted from the front; all of them when status is 0 */
  int32_t status;      /* 0 or a HAUL_E* */
  uint32_t reserved;   /* 0 */
} haul_completion;

/* Runs inside haul_reap(), on the reaping thread, never on a mover (paper 000, III-B.2). May
 * submit, wait and reap. *completion is valid during the call only. Must not throw. */
typedef void (*haul_callback)(const haul_completion* completion, void* context);

/* A request in full. Zero it, set `size`, fill what is needed (haul_request_copy() and
 * haul_request_fill() do the first two). It may be reused as soon as haul_submit() returns; so may
 * the vectors. The memory that extents and `notify` name must live until the request has ended. */
typedef struct haul_request {
  uint32_t size;         /* sizeof(haul_request): lets the struct grow; less is HAUL_EINVAL */
  uint8_t operation;     /* haul_operation */
  uint8_t dst_affinity;  /* haul_affinity */
  uint8_t src_affinity;  /* haul_affinity; fill: ignored */
  uint8_t pattern_bytes; /* fill: 1, 2, 4 or 8 */
  uint32_t flags;        /* HAUL_FENCE | ... */
  uint32_t reserved;     /* 0 */
  haul_extent dst;       /* used when dst_vector is NULL */
  haul_extent src;       /* copy: used when src_vector is NULL. Fill: ignored, as src_vector is */
  const haul_extent* dst_vector; /* or: dst_count extents of one space, filled in order */
  const haul_extent* src_vector; /* or: src_count extents of one space, the same total length as
                                    dst; the two sides need not be cut alike. Where extents of
                                    both sides overlap other than pairwise, what is copied is
                                    not specified */
  uint32_t dst_count, src_count; /* 1 to 1024 with a vector, 0 or 1 without */
  uint64_t pattern; /* fill: the low pattern_bytes bytes, repeated from the first byte of dst */
  uint64_t* notify; /* optional, 8-byte aligned, in this process: set to notify_value with
                       release order after the data, before the ticket reads done (paper 004,
                       2.2). Not written if the request fails */
  uint64_t notify_value;
  uint64_t user_data;     /* handed back in the completion */
  haul_callback callback; /* optional, needs HAUL_COMPLETE */
  void* callback_context; /* handed to the callback */
} haul_request;

/* A request that copies len bytes within this process: everything else zero. */
static inline haul_request haul_request_copy(void* dst, const void* src, size_t len) {
  haul_request r;
  memset(&r, 0, sizeof r);
  r.size = (uint32_t)sizeof r;
  r.dst.address = dst;
  r.dst.length = len;
  r.src.address = (void*)(uintptr_t)src;
  r.src.length = len;
  return r;
}

/* A request that fills len bytes of this process: everything else zero. */
static inline haul_request haul_request_fill(void* dst, uint64_t pattern, uint8_t pattern_bytes,
                                             size_t len) {
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

/* Copies len bytes within this process, with memmove semantics: the ranges may overlap. Both sides
 * are cacheable. Where handing over pays (haul_explain() says from which length on), the ticket is
 * pending and a dedicated core copies; otherwise the copy is complete when the call returns.
 * Whoever copies 1 MiB or more to memory without pages makes these first, huge ones where the copy
 * overwrites them whole (HAUL_MEMORY_HUGE); up to 16 KiB before and behind dst may get pages, too,
 * and keep their contents. Requests are unordered with each other: HAUL_FENCE or a wait orders
 * them. len 0 is done at once, whatever the pointers are. A wrong argument (NULL, a range past
 * 2^56) or a call after haul_shutdown() copies nothing and returns a failed ticket, for which
 * haul_test() and haul_wait() return HAUL_EINVAL or HAUL_ECLOSED. Never waits for another request,
 * and while the mover is awake takes no lock, allocates nothing and makes no system call (from 1
 * MiB on it may ask the kernel once whether dst has pages yet). Async-signal-safe (see Signals).
 * (Paper 000, III-C; paper 003, III: BLKCPY.) */
HAUL_API haul_ticket haul_copy(void* dst, const void* src, size_t len);

/* Fills len bytes with a pattern of 1, 2, 4 or 8 bytes: pattern_bytes says how many (else the
 * ticket has HAUL_EINVAL). It begins with its low byte at dst; dst and len need no alignment. It is
 * planned like a copy of half its length. Otherwise as haul_copy(). Async-signal-safe, too. (Paper
 * 003, III: BLKINIT.) */
HAUL_API haul_ticket haul_fill(void* dst, uint64_t pattern, size_t pattern_bytes, size_t len);

/* Submits count requests in order; tickets[i] is request i's. tickets may be NULL: then
 * haul_drain(), HAUL_COMPLETE or notify tells when they are done. A request that was taken, ran
 * inline and failed is not a refusal: its ticket reports the error. Returns how many were taken:
 * fewer than count if one was refused (haul_last_error() says why, and the requests after it were
 * not looked at), or a negative HAUL_E* if the first was refused. count 0 returns 0. Refusals:
 * HAUL_EINVAL (a field, a count above INT32_MAX), HAUL_EAGAIN (the completion queue is full; with
 * HAUL_NONBLOCK, the ring or its room for vectors, 2048 pieces), HAUL_ECLOSED (after shutdown, or a
 * space that is not open), HAUL_ENOTSUP (no engine can do it), HAUL_ENOMEM (HAUL_COMPLETE, and no
 * ring can be made). Blocks to run what the plan leaves to the caller; a fenced request that runs
 * inline first waits for the thread's earlier ones. Async-signal-safe (see Signals). */
HAUL_API int haul_submit(const haul_request* requests, size_t count, haul_ticket* tickets);

/* ---- tickets ------------------------------------------------------------------------------ */

/* Tests whether a request has ended. 1: done, every byte is visible, and source and destination are
 * the caller's again. 0: pending. Negative: how it failed. That counts as observing: once 65536
 * failures are remembered, haul may forget an observed one for a newer one, and a later test of the
 * same ticket may then return 1. HAUL_EINVAL is also returned for a ticket that is not haul's,
 * HAUL_ESTALE for one of another process, or when more than 65536 failures went unobserved and this
 * ticket's may be among those forgotten. Never blocks, never helps. Async-signal-safe (see
 * Signals); in a handler that interrupts its own thread's call while that deals with a failure, a
 * failed ticket may read as pending. */
HAUL_API int haul_test(haul_ticket ticket);

/* Blocks until the request has ended. Helps: it copies chunks that nobody has begun, and those of
 * earlier requests where the request is fenced; then it spins, yields and sleeps. Any number of
 * threads may wait for one ticket. 0: every byte is visible. Negative: as haul_test(). */
HAUL_API int haul_wait(haul_ticket ticket);

/* Waits as haul_wait(), for at most timeout_ns nanoseconds (UINT64_MAX: no limit). A chunk that the
 * waiter has begun to copy is finished first, so the call may overrun by one chunk's time, even
 * with timeout_ns 0 (haul_test() never copies). HAUL_ETIMEDOUT: the time ran out; the request goes
 * on. */
HAUL_API int haul_wait_for(haul_ticket ticket, uint64_t timeout_ns);

/* Blocks until bytes [offset, offset + len) of the request are visible; their chunks are moved
 * first. The range is clipped to the request; an empty one is visible. In a vector, offsets count
 * through its extents in order. Helps, then spins, yields, and sleeps for 50 us to 1 ms at a time,
 * since progress wakes nobody. 0: they are. Negative: the request has ended with that error, in
 * this range or elsewhere (counts as observing). (Paper 003, IV: per-block progress.) */
HAUL_API int haul_wait_range(haul_ticket ticket, size_t offset, size_t len);

/* Waits as haul_wait_range(), for at most timeout_ns nanoseconds (UINT64_MAX: no limit); like
 * haul_wait_for() it may overrun by one chunk's time. HAUL_ETIMEDOUT: the time ran out; the request
 * goes on. (Paper 003, IV.) */
HAUL_API int haul_wait_range_for(haul_ticket ticket, size_t offset, size_t len,
                                 uint64_t timeout_ns);

/* Tests whether bytes [offset, offset + len) of the request are visible. Blocks of
 * HAUL_COPY_BLOCK_BYTES (4096) become visible as a whole; overlapping copies show no progress
 * before they end. 1: they are visible. 0: not yet. Negative: the error that the request has ended
 * with (counts as observing). Never blocks. */
HAUL_API int haul_test_range(haul_ticket ticket, size_t offset, size_t len);

/* Sets *good_bytes to how many bytes from the front are visible now: in whole blocks while the
 * request is pending, to the byte once it has failed (0 if its failure was forgotten), its length
 * once it is done (SIZE_MAX when its slot has been reused since). Returns as haul_test(), but does
 * not count as observing. HAUL_EINVAL: also if good_bytes is NULL. Never blocks; takes a lock for a
 * failed request. */
HAUL_API int haul_progress(haul_ticket ticket, size_t* good_bytes);

/* Blocks until everything the calling thread has submitted has ended; helps. Returns 0, or the
 * first error among the requests from the oldest unfinished one on (which counts as observing
 * them). Requests that had ended before that one, and inline ones, are not looked at: test their
 * tickets. */
HAUL_API int haul_drain(void);

/* ---- completion queue (one per thread; paper 000, III-B.2) --------------------------------- */

/* Takes entries from the calling thread's queue, in the order in which they arrived: up to max of
 * them (at least 1, at most 1024 a call). Runs their callbacks. Each entry's ticket is done by
 * then, and its failure counts as observed. An entry takes up its place among the 1024 from its
 * submit until it is reaped. What a thread has not reaped when it exits is dropped. Returns how
 * many there were; 0 if none. HAUL_EINVAL: entries is NULL or max is 0. Never sleeps. */
HAUL_API int haul_reap(haul_completion* entries, size_t max);

/* A descriptor that tells poll or epoll of entries; it is made at the thread's first call and the
 * same from then on. It becomes readable once after haul_reap_arm() when an entry arrives. Do not
 * read, write or close it: it is haul's, and is closed when this thread has exited and its requests
 * have ended. In a child of fork it is closed; call this again there. If the program has closed it
 * all the same (or put a file of its own at its number, which haul leaves alone), this makes a new
 * one, readable at once; take the old number out of poll sets. Returns the descriptor, or
 * HAUL_ENOMEM. */
HAUL_API int haul_reap_eventfd(void);

/* Clears the descriptor and arms it for one notification. An event loop arms, and reaps and arms
 * again while the answer is 1, before it polls. The descriptor may fire while the oldest entry is
 * still being written: a reap that then finds nothing must be followed by another arming. Where
 * this thread drives an asynchronous engine itself (haul_explain(): scheme SCI), a mover is made or
 * woken that drives it from now on; where there can be none, this waits until those requests are
 * done. Returns 1 if entries are waiting already (reap them; it is not armed), else 0. HAUL_ENOMEM:
 * the thread can have no queue. HAUL_ECLOSED: the program has closed the descriptor (it is not
 * armed; ask haul_reap_eventfd() for a new one). */
HAUL_API int haul_reap_arm(void);

/* ---- memory that can be shared ------------------------------------------------------------ */

/* Memory for the buffers of large requests: `bytes` bytes, rounded up to whole pages of 4096,
 * zeroed, page-aligned, readable and writable. The node's service (`haul serve`), and messages,
 * reach it by mapping it, at the speed of memory, where other memory takes a slower copy by the
 * kernel; otherwise it is memory like any other. Each call takes whole pages and makes system
 * calls: allocate buffers, not objects. Pages are provided when they are first touched; the first
 * call reserves addresses (HAUL_MEMORY_ARENA_BYTES, less where the limits on addresses or file size
 * are low) and takes one descriptor. NULL, and haul_last_error() says why: 0 bytes, more than was
 * reserved, or no memory, addresses or descriptors left. Never blocks for long. Fork: a child
 * shares it with its parent, as MAP_SHARED memory, for as long as the parent has not freed it; what
 * the child allocates is its own. The memory has no name and goes away with the last process that
 * has it, however that ends. (Paper 000, III-C: caching of memory mapped pages.) */
HAUL_API void* haul_alloc(size_t bytes);

/* Frees what haul_alloc() returned. The pages go back to the system before it returns; reading them
 * then gives zeroes, or what is allocated there next. Never free memory that an unfinished request
 * uses. NULL is 0. Undo protection (mprotect) and locks (mlock) first. In a child of fork, memory
 * of the parent's is only forgotten: the parent still has it, and frees it. HAUL_EINVAL: an address
 * that haul_alloc() did not return, or one freed already. HAUL_EIO: the kernel does not take the
 * pages; they stay allocated, but some may read as zeroes. Any thread may free any thread's. */
HAUL_API int haul_free(void* memory);

/* ---- spaces ------------------------------------------------------------------------------- */

/* Opens another process's memory for extents; pid is what getpid() returns there. That grants no
 * right: each transfer needs the right to ptrace the process, and the kernel checks it every time,
 * against the thread that submits: a thread whose user, group or capabilities are not the mover's
 * copies itself, before the submit returns. (Should they change in between: HAUL_EPERM.) A reused
 * pid is not mistaken for the peer, even where the program has closed haul's descriptor of it. The
 * call probes with a read. HAUL_EPERM: it is refused. HAUL_EPEER: there is no such process.
 * HAUL_EINVAL: pid cannot be one, or space is NULL. HAUL_ENOMEM: no descriptor is left, or 255
 * spaces are open. HAUL_ENOTSUP: the kernel lacks pidfd_open or process_vm_readv. HAUL_EIO: it
 * fails otherwise. Blocks for a few system calls. */
HAUL_API int haul_space_open(int pid, haul_space* space);

/* Opens the memory of a GPU for extents. device: "cuda" or "cuda:0" is the first GPU, "cuda:1" the
 * second, as the CUDA driver counts them. Addresses there are the pointers that cudaMalloc() or
 * cuMemAlloc() gives; a GPU may be opened more than once, and has to be opened before its memory is
 * named. Copies with one or both sides there are the GPU's own: no CPU touches that memory, and
 * none takes over. Such a request is refused with HAUL_ENOTSUP if it is a fill, HAUL_CHECKED, or
 * its sides overlap; with HAUL_EAGAIN where the thread's ring is full, or the process forks; with
 * HAUL_EIO once the GPU has failed. It fails with HAUL_EFAULT where a side is not memory of that
 * GPU, and with HAUL_EIO if the GPU fails: haul_engine() says why. haul copies on streams of its
 * own: what kernels write must be there before the submit (cudaStreamSynchronize()), and kernels
 * that read must be launched after haul_wait(). The thread's current context stays what it is.
 * Memory of this process that is registered with CUDA (cudaHostRegister(), cudaMallocHost()) goes
 * straight, other memory through pinned memory of haul's, until it comes again (docs/guide). A
 * child of fork has no GPU (HAUL_EIO). HAUL_ENOTSUP: there is no such GPU, no driver, or no
 * libhaul-cuda.so; the sentence says which. HAUL_EINVAL: NULL, or a name of another form. HAUL_EIO:
 * the GPU cannot be used. HAUL_ENOMEM: 255 spaces are open. HAUL_ECLOSED: after haul_shutdown().
 * Blocks while driver and GPU start, up to seconds for the first; not for signal handlers. */
HAUL_API int haul_space_open_device(const char* device, haul_space* space);

/* Closes a space. What is being transferred is finished; what has not begun fails with
 * HAUL_ECLOSED. HAUL_EINVAL: HAUL_SPACE_SELF, or a handle that is not open. Never blocks. */
HAUL_API int haul_space_close(haul_space space);

/* ---- memory of another process, with its permission ----------------------------------------- */

/* A capability for granted memory: whoever holds both may name it. Pass it on as you would pass a
 * file: the descriptor over a Unix socket (SCM_RIGHTS) or to a child, the index beside it. */
typedef struct haul_grant {
  int32_t fd; /* haul's if haul_share() gave it: do not close it; the program's if received */
  uint32_t reserved; /* 0 */
  uint64_t index;
} haul_grant;

/* What may be done with granted memory. */
enum { HAUL_SHARE_READ = 1u << 0, HAUL_SHARE_WRITE = 1u << 1 };

/* Lets other processes of the user name [address, address + len) in their requests: to read
 * (HAUL_SHARE_READ), to write (HAUL_SHARE_WRITE) or both. The node's service (`haul serve`) does
 * the copying, in one copy and for any number of them; they never see the address, nor any other
 * memory, and cannot reach it without the service. Memory of haul_alloc() is copied at the speed of
 * memory, other memory more slowly and only where the kernel lets the service read this process.
 * The memory must stay allocated until the grant is taken back. A child of fork has granted
 * nothing. HAUL_ENOTSUP: there is no service, or it refuses. HAUL_EINVAL: NULL, an empty range or
 * one past 2^56, no or unknown rights. HAUL_ENOMEM: 4096 grants are out, or no descriptor is left.
 * HAUL_ETIMEDOUT: the service does not answer for 5 s; nothing is granted. HAUL_ECLOSED: after
 * haul_shutdown(). Waits up to 2.5 s for a service. */
HAUL_API int haul_share(void* address, size_t len, uint32_t rights, haul_grant* grant);

/* Takes a grant back. When it returns 0, nobody reads or writes there any more; what others had in
 * flight there fails with HAUL_EPERM, and haul_progress() says how much of it is good. HAUL_EINVAL:
 * NULL, or no grant of this process. HAUL_ETIMEDOUT: the service did not answer within 5 s, which
 * other threads' earlier calls may have used up; it may still be using the memory. Blocks for the
 * answer, microseconds as a rule, with signals open. */
HAUL_API int haul_unshare(const haul_grant* grant);

/* Opens granted memory as a space for extents: addresses there are 0 to *len - 1. Close the space
 * with haul_space_close(); grant->fd may be closed at once. Requests on it go to the service
 * whatever their size. They are refused with HAUL_EAGAIN when the ring is full or the service away,
 * with HAUL_ENOTSUP where the sides overlap within one grant, the notification word is not in
 * memory of haul_alloc(), or the other side is not and the service cannot reach it. They fail with
 * HAUL_EPERM when the grant does not allow them or was taken back, HAUL_EFAULT past its end,
 * HAUL_EPEER when its process is gone, HAUL_EIO when the service dies: the caller cannot finish
 * them. HAUL_EPERM: there is no such grant (any more). HAUL_ENOTSUP: no service. HAUL_EINVAL: NULL
 * (len may be), or grant->fd is not a grant's. HAUL_ENOMEM: 255 spaces are open. HAUL_EAGAIN,
 * HAUL_ETIMEDOUT: the service went away, or does not answer. */
HAUL_API int haul_space_open_grant(const haul_grant* grant, haul_space* space, size_t* len);

/* ---- plans and state ---------------------------------------------------------------------- */

/* How many reasons a plan has at most. */
#define HAUL_PLAN_REASONS 8

/* What the planner would do with a request now, and why. */
typedef struct haul_plan {
  uint32_t size;               /* set to sizeof(haul_plan) by the caller */
  uint32_t chunks;             /* pieces the request is cut into, 1 to 31 */
  uint64_t chunk_bytes;        /* of the largest; those at both ends are smaller */
  uint64_t inline_below_bytes; /* ordinary requests of fewer bytes are the caller's, in the mover's
                                  present state, but for bursts; UINT64_MAX: all */
  uint64_t mover_from_bytes;   /* copies from here on are the mover's; in between, the caller's if
                                  a timed read finds the source cached and, from 1 MiB on, the
                                  destination has pages; UINT64_MAX: none */
  char scheme[8];              /* SCNI, MCNI, SCI, MCI (paper 000, I) */
  char mover[16];              /* caller, thread, service */
  char engine[16]; /* cpu, cma, dmadev, cuda, as haul_engine() names them; none: no engine can */
  uint32_t reason_count; /* 0 to HAUL_PLAN_REASONS */
  uint32_t reserved;     /* 0 */
  /* One sentence each: why this mover, why this engine, how it is cut, what the costs are. */
  char reasons[HAUL_PLAN_REASONS][192];
} haul_plan;

/* Plans without submitting. The request is checked, and refused, as by haul_submit(); but one that
 * no engine can do is explained. Between the two thresholds of haul_plan it reads two bytes of the
 * source, as a submit would, and faults where they are not mapped; it reads no other memory than
 * the request. HAUL_EINVAL: NULL, or plan->size is too small. Never blocks. */
HAUL_API int haul_explain(const haul_request* request, haul_plan* plan);

/* One engine as `haul info` shows it. */
typedef struct haul_engine_info {
  uint32_t size;      /* set to sizeof(haul_engine_info) by the caller */
  uint32_t available; /* 1 or 0 */
  char name[16];
  char spaces[64];  /* what it reaches, in words */
  char status[192]; /* "ready", or why not and what to do about it */
  /* Pieces moved so far by this process, and their bytes; what haul_copy() and haul_fill() moved
   * at once, without a plan, is not counted. */
  uint64_t chunks, bytes;
} haul_engine_info;

/* Describes engine number index, from 0. HAUL_EINVAL: past the last, or info is NULL or its size
 * too small. May make a few system calls. */
HAUL_API int haul_engine(unsigned index, haul_engine_info* info);

/* This process's movers and counters. The counters are read one by one, while other threads go on
 * counting. */
typedef struct haul_state {
  uint32_t size;        /* set to sizeof(haul_state) by the caller */
  uint32_t mover_state; /* 0 none yet, 1 awake, 2 asleep, 3 the lease is refused (another
                           process has the core), 4 impossible here */
  int32_t mover_cpu;    /* the leased core; -1 without, or not pinned */
  uint32_t threads;     /* rings in use */
  uint64_t submitted, inlined, dedicated; /* requests of threads that have a ring: all, run by the
                                             caller, given to a mover */
  uint64_t helped_chunks, moved_chunks;   /* chunks taken by waiters, by movers */
  uint64_t failed, unobserved; /* requests that failed; dedicated ones' failures not observed */
  uint64_t round_trip_ns;      /* between caller and mover core, 0 before it was measured */
  char mover_status[192];      /* one sentence */
  uint32_t service_state;      /* the node's service: 0 not attached, 1 awake, 2 asleep */
  int32_t service_pid;         /* -1 if not attached; as getpid() says there */
  uint64_t service_chunks;     /* chunks that it has moved for this process */
  char service_status[192];    /* one sentence: attached to which, or why not */
} haul_state;

/* Tells of this process's movers and counters, in *state. HAUL_EINVAL: NULL, or state->size is too
 * small. Never blocks for long. */
HAUL_API int haul_query(haul_state* state);

/* Wakes (or starts) the mover ahead of a burst, so that the next copies go to it; where the node's
 * service runs, attaches to it or wakes it. 0: it is awake or will be in a moment. HAUL_EAGAIN:
 * another process leases the core. HAUL_ENOTSUP: one CPU only, or HAUL_MOVER_CORES=0. HAUL_ENOMEM:
 * no thread or no ring. HAUL_ECLOSED: after haul_shutdown(). One system call while the mover
 * sleeps, none while it is awake; the first call makes threads. */
HAUL_API int haul_wake(void);

/* Calibrates in the foreground and stores the figures for later processes. They are taken into use
 * at once. It takes a fraction of a second and needs the mover. progress (optional) is called with
 * 0 to 100 on the calling thread. HAUL_EAGAIN: there is no mover now, it has done nothing for 3 s,
 * or the machine was too busy to be measured (haul_last_error() says which; nothing changes).
 * HAUL_ENOTSUP: no mover can run here. HAUL_ECLOSED: after haul_shutdown(). HAUL_ENOMEM: no memory
 * for the buffers. Another error: measured and in use, but not stored; haul_last_error() says why.
 */
HAUL_API int haul_tune(void (*progress)(int percent, void* context), void* context);

/* Finishes everything in flight, stops the movers and gives the core back. Later submits are
 * refused with HAUL_ECLOSED and move nothing; tickets and queues stay readable. exit() finishes and
 * stops in the same way, but what is submitted after that, by functions registered with atexit()
 * before the first submit or by destructors of static objects made before it, is carried out inline
 * instead of refused. Always 0; idempotent. Blocks for the rest of the copies, with signals open;
 * where they make no progress for HAUL_MOVER_PATIENCE_MS (5 s: memory that does not arrive, a
 * stopped service, a crash handler that holds the mover) it says on standard error what it leaves,
 * and returns. */
HAUL_API int haul_shutdown(void);

#ifdef __cplusplus
}
#endif

#endif /* HAUL_HAUL_H */
