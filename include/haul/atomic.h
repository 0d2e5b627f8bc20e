/* atomic.h: atomic operations on another host's memory, in C11 (libhaul-atomic.so.0; in C++20:
 * atomic.hpp). Fetch&add, fetch&write, compare&swap and their like act on a window of memory that
 * its owner has made. A responder executes them; with "xdp" that is the receive path of the owner's
 * network interface, and no process of that host takes part (paper 002).
 *
 *   haul_atomic_node* node;  // the owner: root, at eth0
 *   haul_atomic_window* window;
 *   haul_atomic_window_name name;
 *   haul_atomic_node_open("xdp:eth0", NULL, &node);
 *   haul_atomic_window_create(node, 4096, &window);
 *   haul_atomic_window_export(window, &name);  // tell others its name
 *
 *   haul_atomic_remote* counter;  // anybody else
 *   haul_atomic_node_open("none", NULL, &node);
 *   haul_atomic_connect(node, &name, &counter);
 *   haul_atomic_fetch_add(counter, name.address, 1, &old);  // a round trip
 *
 * Conventions, for every function below unless its comment says otherwise:
 *  - Return: 0 (or a count) on success, a negative HAUL_E* of haul.h on failure. errno is neither
 *    read nor set.
 *  - Errors: haul_last_error() and haul_strerror() of haul.h are in this library, too. A thread has
 *    one latest error: where a process has loaded libhaul.so.0 as well, haul_last_error() is the
 *    sentence (cause and remedy) of whichever library's call failed last. (Libraries that were
 *    opened apart, by dlopen() with RTLD_LOCAL, each keep a sentence of their own.)
 *  - Units: lengths in bytes, times in nanoseconds. Words are in the byte order of little-endian
 *    hosts, which all hosts of haul are.
 *  - Threads: any thread may call at any time; calls on the connections of one node take turns.
 *    Closing or destroying something that another thread is using is an error of the program.
 *  - Signals: no function may be called from a signal handler. None blocks signals while it waits:
 *    handlers run at once, and the wait goes on; a signal that ends a process ends it. haul's
 *    threads block all asynchronous signals. They have ordinary scheduling, whatever the thread
 *    that made them has.
 *  - Cancellation: no function is a cancellation point. A pthread_cancel() stays pending until the
 *    program's own next cancellation point. (A program that must be able to end a wait gives it a
 *    timeout, or uses haul_atomic_test() and haul_atomic_lock_test().) Asynchronous cancelability
 *    is not supported.
 *  - Fork: a child has none of its parent's nodes: calls on them return HAUL_ESTALE; it may open
 *    its own. These functions hold no lock over a fork, so neither waits for the other, whatever
 *    handlers the program has (pthread_atfork()). The memory of windows stays mapped in the child.
 *    The child has the nodes' descriptors until it ends or executes a program: until then a port
 *    that was asked for stays taken, and, if the parent was killed, an XDP program attached.
 *  - Ends: exit() waits for none of these functions. A node that serves is a server: once main has
 *    called pthread_exit() and the program's other threads have ended, the node's threads keep the
 *    process alive until a signal ends it (within a quarter of a second; a handler then runs on a
 *    thread of haul's). A node "none" has no threads, and keeps no process alive.
 *  - Descriptors: none of haul's is 0, 1 or 2. A program may close them (closefrom()), or put files
 *    of its own in their place, while none of its threads is in a call on that node: those files
 *    stay as they are, and the node goes on: it opens its sockets again at their ports. What cannot
 *    be opened again is reported with HAUL_EIO: by operations (another process has the port by
 *    now), by haul_atomic_window_attach() (that window's descriptor is gone), by
 *    haul_atomic_window_create() (XDP's descriptors are, and with them its service);
 *    haul_atomic_node_describe() then says "not serving". What a libfabric provider has open must
 *    stay open.
 *  - Exactly once: an operation whose call succeeded was executed once, whatever the network lost,
 *    repeated or reordered. One that failed with HAUL_ETIMEDOUT, HAUL_EPEER, or HAUL_ESTALE because
 *    its window was destroyed, was executed once or not at all; every other failure means that it
 *    was not executed.
 */
#ifndef HAUL_ATOMIC_H
#define HAUL_ATOMIC_H

#include <haul/haul.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- handles ------------------------------------------------------------------------------ */

/* A node is a place in the network: it may serve windows, and reach those of other nodes. */
typedef struct haul_atomic_node haul_atomic_node;
/* Memory on which remote atomics may act, mapped here. */
typedef struct haul_atomic_window haul_atomic_window;
/* Another node's window, as reached from here. */
typedef struct haul_atomic_remote haul_atomic_remote;

/* ---- nodes -------------------------------------------------------------------------------- */

/* How replies are heard. */
typedef enum haul_atomic_hearing {
  HAUL_ATOMIC_HEAR_AUTO = 0, /* by completion map where there is an XDP program, else by socket */
  HAUL_ATOMIC_HEAR_COMPLETION = 1, /* an XDP program writes replies into memory that the caller
                               polls; fails where there is none, nor does "xdp" fall back */
  HAUL_ATOMIC_HEAR_SOCKET = 2      /* a UDP socket */
} haul_atomic_hearing;

/* Options of a node. Zero them, set `size`, fill what is needed: 0 means the default. */
typedef struct haul_atomic_node_options {
  uint32_t size;     /* sizeof(haul_atomic_node_options) */
  uint16_t port;     /* UDP port of the responder; 0: the kernel chooses, or there is none */
  uint8_t hearing;   /* haul_atomic_hearing */
  uint8_t reserved;  /* 0 */
  uint32_t sessions; /* clients served at once, 1 to 65536; default 256 */
  uint32_t
      connections;    /* haul_atomic_remotes at once with a completion map, 1 to 4096; default 64 */
  int32_t cpu_plus_1; /* 1 + the CPU of the responder's thread, if it is one; 0: any */
  uint32_t spin_us; /* how long waiters, and the responder `spin`, spin before they sleep; 0: 50 */
  uint64_t timeout_ns; /* operations without an answer for so long fail; 0: 5 s */
  const char* host;    /* what names of windows say; NULL: the interface's first address */
} haul_atomic_node_options;

/* Opens a node. `responder` says who executes what others ask of its windows:
 *   "xdp:IFACE"         the receive path of that interface, native or
 *                       generic, whichever it can
 *   "xdp-native:IFACE"  in its driver only
 *   "xdp-skb:IFACE"     generic only
 *   "poll[:ADDRESS]"    a thread that polls a socket at this address
 *                       (default: all)
 *   "spin[:ADDRESS]"    a thread that polls for a while, then sleeps in
 *                       the kernel
 *   "block[:ADDRESS]"   a thread that sleeps in the kernel
 *   "fabric:PROVIDER[:ADDRESS]"
 *                       a libfabric provider, such as cxi or tcp;ofi_rxm,
 *                       at this address or in this domain (see below)
 *   "none"              nobody: this node has no windows
 *   "none:IFACE"        likewise, but with an XDP program on that
 *                       interface that hears replies (also
 *                       "none-native:IFACE", "none-skb:IFACE")
 * "All" addresses are those of IPv4 and IPv6; "none" reaches both as well. XDP programs read IPv4
 * only: over IPv6 an "xdp" node is served by a thread that runs the same program, and nodes at an
 * interface reach windows over IPv4 alone. "xdp" needs CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and
 * CAP_NET_RAW (root has them) and libhaul-atomic-xdp.so; where they are missing, `block` serves
 * instead, at the interface's address: a warning on standard error says so, and
 * haul_atomic_node_describe() ("xdp-native" and "xdp-skb" fail instead). A veth interface sends
 * natively only to a peer with a native XDP program of its own, so "xdp" is generic there. Opening
 * a node with an XDP program may take 64 KiB of the calling thread's stack (libbpf). "fabric"
 * (atomic/fabric/README.md) reaches nodes with the same provider alone; `host` must be NULL, nobody
 * counts what is served, each operation of a batch is a round trip or more. The operations of
 * software providers (tcp, udp, shm, sockets; ofi_rxm, ofi_rxd) are atomic with the CPU's; with
 * others the owner uses haul_atomic_window_run() alone, which waits then, and a process that has
 * attached only reads. HAUL_EINVAL (an unknown word, a bad option), HAUL_ENOMEM, HAUL_EPERM,
 * HAUL_ENOTSUP (no such interface, or it has an XDP program already; no such provider), HAUL_EIO.
 * May take a second (BPF is verified). */
HAUL_API int haul_atomic_node_open(const char* responder, const haul_atomic_node_options* options,
                                   haul_atomic_node** node);

/* Probes whether an XDP program can be loaded here and now: loads it, but attaches it to nothing.
 * The kernel stops verifying a program when a signal comes: thousands of signals a second make this
 * function return HAUL_ENOTSUP, and "xdp" fall back to `block`. 0: it can ("xdp" may still fail at
 * an interface). Negative: the code with which haul_atomic_node_open() would fail. */
HAUL_API int haul_atomic_probe_xdp(void);

/* Closes a node: its windows are no longer served (their memory stays until
 * haul_atomic_window_destroy()); its connections end and are freed, as by haul_atomic_disconnect().
 * node NULL: nothing. A process that is killed leaves no XDP program, socket or file. Blocks for a
 * moment (up to half a second where the program has closed haul's descriptors), whatever its peers
 * do. */
HAUL_API int haul_atomic_node_close(haul_atomic_node* node);

/* Says in one line who serves, how, and why not as asked: "xdp, native, on eth0, 10.0.0.2 port
 * 9475", for example. Truncated at `bytes`. */
HAUL_API int haul_atomic_node_describe(haul_atomic_node* node, char* text, size_t bytes);

/* The node's counters, as many as fit. haul_atomic_node_counter_name(i) says what counter i counts
 * ("served operations", "dropped: checksum"); NULL from their number on. Returns how many there
 * are. */
HAUL_API int haul_atomic_node_counters(haul_atomic_node* node, uint64_t* values, size_t count);
HAUL_API const char* haul_atomic_node_counter_name(size_t index);

/* ---- windows ------------------------------------------------------------------------------ */

/* What others need to reach a window: the triple of paper 002, III-B (host, port, address), and a
 * key that a stranger cannot guess. Fixed size, no pointers: may be sent as it is. */
typedef struct haul_atomic_window_name {
  char host[64];    /* numeric address, or a libfabric one; NUL-terminated */
  uint16_t port;    /* UDP, or a provider's; 0: it has none */
  uint16_t kind;    /* 0: UDP; 1: libfabric, host is "PROVIDER@ADDRESS" */
  uint32_t window;  /* number at its node */
  uint64_t address; /* of its first byte, in the owner's address space */
  uint64_t bytes;
  uint64_t key; /* random; whoever knows it may operate on the window */
} haul_atomic_window_name;

/* Makes a zeroed, page-aligned window of `bytes` bytes: 1 to 1 TiB, rounded up to whole pages in
 * memory. At most 256 a node. HAUL_EINVAL, HAUL_ENOTSUP (a node without a responder), HAUL_ENOMEM,
 * HAUL_EIO (the node's service is lost, see Descriptors). */
HAUL_API int haul_atomic_window_create(haul_atomic_node* node, size_t bytes,
                                       haul_atomic_window** window);

/* Maps the window of another process of this host, by the name that it has passed on. Both
 * processes are in one network namespace. The owner's node must be open, and both processes of one
 * user (or one of them root's). HAUL_EPEER: no process serves that name; HAUL_EPERM: a wrong key,
 * or another user's; HAUL_EAGAIN: too many ask at once; HAUL_EIO: the owner has closed the window's
 * descriptor. HAUL_ENOMEM. Blocks for up to a second. */
HAUL_API int haul_atomic_window_attach(const haul_atomic_window_name* name,
                                       haul_atomic_window** window);

/* Counters of the node that serves a window, as haul_atomic_node_counters(): the window is another
 * process's on this host and in this network namespace. Errors as haul_atomic_window_attach(). */
HAUL_API int haul_atomic_window_counters(const haul_atomic_window_name* name, uint64_t* values,
                                         size_t count);

/* The first byte of a window's memory here, and its length. The owner and whoever has attached may
 * use it with ordinary loads, stores and CPU atomics (of 4 and 8 bytes, aligned): they and the
 * remote operations are atomic with each other (over a fabric: see haul_atomic_node_open()).
 * Guarded words: see haul_atomic_window_run(). */
HAUL_API void* haul_atomic_window_memory(const haul_atomic_window* window);
HAUL_API size_t haul_atomic_window_bytes(const haul_atomic_window* window);

/* A window's name, to be told to others. */
HAUL_API int haul_atomic_window_export(const haul_atomic_window* window,
                                       haul_atomic_window_name* name);

/* Unmaps a window; the owner's call also ends its service: later operations on it fail with
 * HAUL_ESTALE. window NULL: nothing. */
HAUL_API int haul_atomic_window_destroy(haul_atomic_window* window);

/* A window's name as one word of text, and back:
 * "haul:10.0.0.2:9475/0/7f2a4c000000+1000#6d3f0a92c1b4e857" (host and port, number, address+bytes
 * and key in hexadecimal; an IPv6 host in brackets). Over a fabric it begins
 * "haul+fabric:tcp;ofi_rxm@10.0.0.2:" (an address that is no socket's is "=" and base64url), which
 * must be quoted in a shell. HAUL_EINVAL: not a name, or too little room (160 bytes are enough). */
HAUL_API int haul_atomic_window_format(const haul_atomic_window_name* name, char* text,
                                       size_t bytes);
HAUL_API int haul_atomic_window_parse(const char* text, haul_atomic_window_name* name);

/* ---- operations --------------------------------------------------------------------------- */

/* What an operation does. */
typedef enum haul_atomic_code {
  HAUL_ATOMIC_READ = 1,
  HAUL_ATOMIC_WRITE = 2,
  HAUL_ATOMIC_ADD = 3,  /* fetch&add */
  HAUL_ATOMIC_SWAP = 4, /* fetch&write */
  HAUL_ATOMIC_CAS = 5,  /* compare&swap: `operand` replaces the word if it equals `compare` */
  HAUL_ATOMIC_AND = 6,
  HAUL_ATOMIC_OR = 7,
  HAUL_ATOMIC_XOR = 8
} haul_atomic_code;

/* Flags of an operation. */
enum {
  /* The next operation of the batch is executed only if this one's old value equals its `compare`
   * (of a compare&swap: if it swapped); else it and all behind it report HAUL_EAGAIN, unexecuted.
   */
  HAUL_ATOMIC_LINK = 1u << 0,
  /* The word is a guarded one: its low half is a value of 32 bits, its high half the stamp of the
   * holder that touched it last. `token` is a fencing token: one that is older than the word's
   * stamp is refused with HAUL_ESTALE, a newer one's stamp replaces it (also if it only reads).
   * Width 8. Stamps are the token's low 32 bits, compared modulo 2^32. */
  HAUL_ATOMIC_GUARDED = 1u << 1
};

/* One operation, and what became of it. */
typedef struct haul_atomic_operation {
  uint8_t code;  /* haul_atomic_code */
  uint8_t width; /* 4 or 8 bytes */
  uint8_t flags; /* HAUL_ATOMIC_LINK, ... */
  uint8_t reserved;
  int32_t status;   /* out: 0, HAUL_EINVAL (unaligned, unknown), HAUL_EFAULT (outside the window),
                       HAUL_ESTALE (guarded), HAUL_EAGAIN (linked; or guarded, and others changed
                       the word each time: unexecuted), or how the whole batch failed */
  uint64_t address; /* in the owner's address space: name.address + an offset */
  uint64_t operand;
  uint64_t compare;
  uint64_t token;
  uint64_t old; /* out: the word before the operation; of a write 0 */
} haul_atomic_operation;

/* Operations of a packet, and packets of a connection under way, at most. */
enum { HAUL_ATOMIC_MAX_BATCH = 16, HAUL_ATOMIC_MAX_OUTSTANDING = 63 };

/* Connects to a window. HAUL_ETIMEDOUT: no answer; HAUL_EPERM: no such window, or a wrong key;
 * HAUL_EAGAIN: its node has no room for another client; HAUL_ENOTSUP: it speaks another version;
 * HAUL_ENOMEM: `connections` are open. Blocks for up to the node's timeout_ns. */
HAUL_API int haul_atomic_connect(haul_atomic_node* node, const haul_atomic_window_name* name,
                                 haul_atomic_remote** remote);

/* Ends a connection; its unfinished operations fail unseen. remote NULL: nothing. */
HAUL_API int haul_atomic_disconnect(haul_atomic_remote* remote);

/* Sends 1 to 16 operations as one packet and returns: they are executed in this order, though other
 * clients' may come in between. `tag` is handed back with the answer, *ticket (may be NULL) names
 * it. Packets of one connection may be executed in any order: a caller that needs an order waits
 * for each, or puts them into one batch. HAUL_EAGAIN: 63 are unanswered or not yet collected, so
 * collect one. HAUL_EPEER: the owner was restarted, or has not heard of this client for a minute:
 * connect again. A system call; never waits. (Paper 002, III-B: gm_atomic_send_with_callback.) */
HAUL_API int haul_atomic_submit(haul_atomic_remote* remote, const haul_atomic_operation* operations,
                                size_t count, uint64_t tag, uint64_t* ticket);

/* Tests whether a packet is answered. 1: it is; `operations` (the array submitted, or another of
 * `count`; may be NULL) has the old values and statuses, and the ticket is spent. 0: not yet.
 * Negative: how the packet failed; its ticket is spent, too. HAUL_EINVAL: no such ticket. Never
 * waits, but looks at the network; a client that never looks never retransmits what was lost. */
HAUL_API int haul_atomic_test(haul_atomic_remote* remote, uint64_t ticket,
                              haul_atomic_operation* operations, size_t count);

/* Waits until a packet is answered; otherwise as haul_atomic_test(). 0: it is. Negative: how the
 * packet failed. Blocks: spins for spin_us, then sleeps. */
HAUL_API int haul_atomic_wait(haul_atomic_remote* remote, uint64_t ticket,
                              haul_atomic_operation* operations, size_t count);

/* An answer; answers are collected in the order in which they came. */
typedef struct haul_atomic_completion {
  uint64_t tag;
  uint64_t ticket;
  int32_t status; /* 0, or how the packet failed; each operation's own is in `statuses` */
  uint32_t count; /* operations */
  uint64_t old[HAUL_ATOMIC_MAX_BATCH];
  int32_t statuses[HAUL_ATOMIC_MAX_BATCH];
} haul_atomic_completion;

/* Collects up to `capacity` answers of a connection. Returns how many. Never waits. */
HAUL_API int haul_atomic_reap(haul_atomic_remote* remote, haul_atomic_completion* completions,
                              size_t capacity);

/* Submits operations and waits for their answer. 0: every operation was done. Negative: the first
 * status that is not 0. */
HAUL_API int haul_atomic_run(haul_atomic_remote* remote, haul_atomic_operation* operations,
                             size_t count);

/* Runs operations on a window that is mapped here, by the CPU; addresses are the owner's, as in its
 * name. Guarded words must be written in this way, since a stale holder's plain store could not be
 * refused. Never waits. */
HAUL_API int haul_atomic_window_run(haul_atomic_window* window, haul_atomic_operation* operations,
                                    size_t count);

/* ---- single operations on words of 64 bits, blocking (paper 002, table I) ------------------ */

/* One operation on a word, which the functions of single operations call. */
static inline int haul_atomic_one(haul_atomic_remote* remote, uint8_t code, uint64_t address,
                                  uint64_t operand, uint64_t compare, uint64_t* old) {
  haul_atomic_operation operation;
  int result;
  memset(&operation, 0, sizeof operation);
  operation.code = code;
  operation.width = 8;
  operation.address = address;
  operation.operand = operand;
  operation.compare = compare;
  result = haul_atomic_run(remote, &operation, 1);
  if (old && result == 0) *old = operation.old;
  return result;
}
/* Adds `data` to the word; *old (may be NULL, as with all of these) receives the word before. */
static inline int haul_atomic_fetch_add(haul_atomic_remote* remote, uint64_t address, uint64_t data,
                                        uint64_t* old) {
  return haul_atomic_one(remote, HAUL_ATOMIC_ADD, address, data, 0, old);
}
/* Writes `data`, and fetches the word before into *old (swap). */
static inline int haul_atomic_fetch_write(haul_atomic_remote* remote, uint64_t address,
                                          uint64_t data, uint64_t* old) {
  return haul_atomic_one(remote, HAUL_ATOMIC_SWAP, address, data, 0, old);
}
/* Writes `data` if the word equals `compare`; it did if *old equals `compare`. */
static inline int haul_atomic_compare_swap(haul_atomic_remote* remote, uint64_t address,
                                           uint64_t data, uint64_t compare, uint64_t* old) {
  return haul_atomic_one(remote, HAUL_ATOMIC_CAS, address, data, compare, old);
}
/* Reads the word into *value. */
static inline int haul_atomic_read(haul_atomic_remote* remote, uint64_t address, uint64_t* value) {
  return haul_atomic_one(remote, HAUL_ATOMIC_READ, address, 0, 0, value);
}
/* Writes the word. */
static inline int haul_atomic_write(haul_atomic_remote* remote, uint64_t address, uint64_t data) {
  return haul_atomic_one(remote, HAUL_ATOMIC_WRITE, address, data, 0, NULL);
}

/* ---- locks -------------------------------------------------------------------------------- */

/* A queue lock between members on any hosts (paper 002, IV): first come, first served; one round
 * trip to its home to acquire and one to release while nobody contends; waiters poll their own
 * memory. Members may die, or be paused, at any moment: after a lease without a sign of the holder
 * another takes over, and the fencing token tells the holders apart. docs/design/atomic-locks.md */
typedef struct haul_atomic_lock haul_atomic_lock;

/* What a lock takes of windows, and its members at most. */
enum {
  HAUL_ATOMIC_LOCK_HOME_BYTES = 16,   /* zeroed memory of a window: the lock */
  HAUL_ATOMIC_LOCK_MEMBER_BYTES = 24, /* likewise, one a member, in a window of that member's */
  HAUL_ATOMIC_LOCK_MAX_MEMBERS = 4096
};
/* Zeroed memory of a home that also keeps the members' names, for up to `count` members. */
#define HAUL_ATOMIC_LOCK_DIRECTORY_BYTES(count) (64 + 128 * (size_t)(count))
/* Any rank that is free in the home's directory. */
#define HAUL_ATOMIC_LOCK_ANY_RANK UINT32_MAX

/* Where words of a lock lie. */
typedef struct haul_atomic_lock_place {
  haul_atomic_window_name window;
  uint64_t offset; /* from the window's first byte; a multiple of 8 */
} haul_atomic_lock_place;

/* Options of a lock's member. Zero them, set `size`. All members give the same home, members and
 * lease. Copied. */
typedef struct haul_atomic_lock_options {
  uint32_t size;     /* sizeof(haul_atomic_lock_options) */
  uint32_t rank;     /* this member's: 0 to count - 1, or HAUL_ATOMIC_LOCK_ANY_RANK */
  uint32_t count;    /* members, up to HAUL_ATOMIC_LOCK_MAX_MEMBERS */
  uint32_t reserved; /* 0 */
  const haul_atomic_lock_place* home;    /* HAUL_ATOMIC_LOCK_HOME_BYTES there; may be anybody's */
  const haul_atomic_lock_place* members; /* `count` of them, by rank (paper 002: the array of
                                     triples); NULL: their names are kept at home, which then has
                                     HAUL_ATOMIC_LOCK_DIRECTORY_BYTES(count) */
  uint64_t own_offset;                   /* members NULL: where in `own` this member's words lie */
  uint64_t lease_ns; /* how long the lock outlives a silent holder; 0: 1 s; from 10 ms
                        to 1 hour */
} haul_atomic_lock_options;

/* Joins a lock as its member `rank`; its words lie in `own`, a window of this process (created or
 * attached). No other member need be there yet: members connect when they meet. Where the home
 * keeps a directory, the member enters its name there, in a free place or in that of a member that
 * does not answer. A lock handle belongs to one thread at a time; node and window must outlive it.
 * Large locks: the home's node needs a session (haul_atomic_node_options) for each member; a
 * member's node needs `connections` for the home and one neighbour, better two, beyond those that
 * the program makes: a connection to a neighbour that was not met for long is given up for
 * another's. HAUL_EAGAIN: all places have members that do answer. HAUL_ETIMEDOUT and others: the
 * home cannot be reached. HAUL_EINVAL, HAUL_ENOMEM. Blocks for a few round trips, for a quarter of
 * a lease for each member that does not answer, and for the node's timeout_ns if the home does not.
 */
HAUL_API int haul_atomic_lock_open(haul_atomic_node* node, haul_atomic_window* own,
                                   const haul_atomic_lock_options* options,
                                   haul_atomic_lock** lock);
/* Leaves the lock, releasing it if it is held. lock NULL: nothing. Blocks for a few round trips; if
 * the home does not answer, for the node's timeout_ns, and up to a lease more in the middle of an
 * acquire (its entry in the directory then stays until another member takes it). */
HAUL_API int haul_atomic_lock_close(haul_atomic_lock* lock);

/* Acquires the lock. *token (may be NULL) receives its fencing token, greater than that of every
 * earlier holder: hand it to guarded operations (HAUL_ATOMIC_GUARDED). HAUL_ETIMEDOUT: not within
 * timeout_ns (UINT64_MAX: no limit). The call may take a lease and a half longer if the queue is
 * broken at that moment or the home does not answer, because it waits that long for what may have
 * changed the lock; a member that asks again soon keeps its place. HAUL_EINVAL: held already. If
 * the home cannot be reached: HAUL_ETIMEDOUT (it does not answer, for the node's timeout_ns at
 * most), HAUL_EPERM (no such window, or a wrong key), HAUL_EPEER (it was restarted, or has
 * forgotten this member, twice in a row), HAUL_EAGAIN (its node has no room for another client),
 * HAUL_ENOMEM (this node has no connection left); so for all functions of a lock. What the failed
 * call was about may have happened all the same, and ends with the lease. Blocks: spins for the
 * node's spin_us, then naps for up to half a millisecond at a time. */
HAUL_API int haul_atomic_lock_acquire(haul_atomic_lock* lock, uint64_t timeout_ns, uint64_t* token);
/* Acquires the lock if it is free. HAUL_EAGAIN: it is not. A round trip; blocks for up to the
 * node's timeout_ns if the home does not answer. */
HAUL_API int haul_atomic_lock_try(haul_atomic_lock* lock, uint64_t* token);
/* Releases the lock, to the member that has waited longest, if any. Complete all guarded operations
 * first. HAUL_ESTALE: the lease was over and another member has the lock by now; guarded words are
 * safe, but what was not guarded may have been changed by both. (0 does not prove that the lease
 * was not over: handing on does not always ask the home.) HAUL_EINVAL: not held. A round trip or
 * two; blocks for a quarter of a lease for each member that does not answer, and for the node's
 * timeout_ns if the home does not: the lock is then free a lease later. */
HAUL_API int haul_atomic_lock_release(haul_atomic_lock* lock);
/* Begins a new lease (one that began less than 1/128 of a lease ago goes on); the token stays.
 * HAUL_ESTALE: as haul_atomic_lock_release(). Blocks as haul_atomic_lock_try(); if it fails
 * otherwise, the lock is still held for what remained of the lease: try again. */
HAUL_API int haul_atomic_lock_renew(haul_atomic_lock* lock);
/* For how long nobody else can have the lock, whatever happens: nanoseconds from now; 0 if the
 * lease is over or the lock is not held. This holds where the clocks of different hosts agree in
 * rate within 1.5 %. */
HAUL_API uint64_t haul_atomic_lock_remaining(const haul_atomic_lock* lock);

/* Actions on a lock for event loops: haul_atomic_lock_start() begins one of them and returns;
 * haul_atomic_lock_test() carries it on and returns 0 while it lasts, 1 when it is done (*token as
 * haul_atomic_lock_acquire() gives it), or how it failed, also when called again; HAUL_EINVAL if
 * nothing was ever started. Call it often: a lock that is handed to a member that does not look
 * waits for its lease to end. timeout_ns is for HAUL_ATOMIC_LOCK_ACQUIRE and _TRY. */
typedef enum haul_atomic_lock_action {
  HAUL_ATOMIC_LOCK_ACQUIRE = 1,
  HAUL_ATOMIC_LOCK_TRY = 2,
  HAUL_ATOMIC_LOCK_RELEASE = 3,
  HAUL_ATOMIC_LOCK_RENEW = 4
} haul_atomic_lock_action;
HAUL_API int haul_atomic_lock_start(haul_atomic_lock* lock, haul_atomic_lock_action action,
                                    uint64_t timeout_ns);
HAUL_API int haul_atomic_lock_test(haul_atomic_lock* lock, uint64_t* token);
/* Has an acquire that was started end as soon as it can, as if its timeout were over:
 * haul_atomic_lock_test() then returns HAUL_ETIMEDOUT, or 1 where the lock came first, which is to
 * be released. Call that until it does: it may take round trips, and a lease and a half where the
 * queue is broken. Without an acquire under way nothing changes. HAUL_EINVAL: lock is NULL. Never
 * blocks. */
HAUL_API int haul_atomic_lock_cancel(haul_atomic_lock* lock);

/* What this member has seen of the lock. */
typedef struct haul_atomic_lock_counts {
  uint64_t acquired;   /* in all */
  uint64_t handed;     /* of these: granted by the previous holder */
  uint64_t taken_over; /* of these: from a holder whose lease was over */
  uint64_t requeued;   /* it had to queue again, as the queue was broken */
  uint64_t forced;     /* releases past a successor that was gone */
  uint64_t skipped;    /* waiters that had given up, passed over */
} haul_atomic_lock_counts;
HAUL_API int haul_atomic_lock_stats(const haul_atomic_lock* lock, haul_atomic_lock_counts* counts);

#ifdef __cplusplus
}
#endif

#endif
