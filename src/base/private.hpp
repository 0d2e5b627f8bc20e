// What exists once a process, for haul's other libraries (fabric/, preload/), which carry base/ as
// hidden code of their own: functions of libhaul.so.0 under the version HAUL_PRIVATE. They are no
// promise to anybody else: libraries of one haul version are installed together.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

struct haul_ticket;
namespace haul {
class Turnstile;
}

// This process's arena (memory/arena.hpp): the descriptor of its memory is `fd`, byte x of it lies
// at base + x. fd -1 and bytes 0: there is none (yet). Wait-free but for two system calls, which
// check the descriptor; thread-safe.
struct HaulPrivateArena {
  std::int32_t fd = -1;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
};
extern "C" [[gnu::visibility("default")]] void haul_private_arena(HaulPrivateArena* arena);

// Does [address, address + bytes) lie in the arena? *offset is then its place there. Wait-free, no
// system call.
extern "C" [[gnu::visibility("default")]] bool haul_private_in_arena(const void* address,
                                                                     std::size_t bytes,
                                                                     std::uint64_t* offset);

// Zeroed pages of the arena, as haul_alloc() gives them (thread-safe; takes its lock, calls no
// malloc but within pthread_atfork() once), at a multiple of `alignment`, a power of two from a
// page to 2 MiB. haul_free() frees them. nullptr: there are none; haul_last_error() says why.
extern "C" [[gnu::visibility("default")]] void* haul_private_alloc(std::size_t bytes,
                                                                   std::size_t alignment);

// Begins to open every engine that is not, for who wants to know what this machine can do. Their
// status (haul_engine()) says what becomes of it. Returns at once.
extern "C" [[gnu::visibility("default")]] void haul_private_open_engines();

// How payloads are copied to and from memory that two cores write by turns. `strings`: by `rep
// movsb` from 2 KiB on, where the processor is known to be fast at that for any alignment, else as
// `vectors`: from the front to the back by plain loads and stores. `prefetching`: by vectors as
// other copies are, which ask ahead for what they read.
enum class HaulPrivateCopy : std::uint8_t { strings, vectors, prefetching };

// How a process writes to the ring of a peer. The fastest way depends on the processor and on how
// far apart the two cores are, so each is what was measured here, what a knob says, or a usual one.
struct HaulPrivateRing {
  std::size_t eager_bytes = std::size_t{64} << 10;  // up to here a message is sent unasked
  std::size_t part_bytes = std::size_t{8} << 10;    // what is sent unasked leaves in parts of it
  std::size_t piece_bytes = std::size_t{32} << 10;  // what is asked for leaves in pieces of it
  // Payloads from here on, and of no more than a cell, are written to cells, which the two sides
  // pass to and fro; 0: none is.
  std::size_t cell_from_bytes = 2048;
  // The writer owns the lines that it will write next ahead of time (prefetchw), and demotes those
  // that it has written to the shared cache (cldemote; where there is none it is no instruction).
  bool owns_ahead = true, demotes = true;
  HaulPrivateCopy copies_in = HaulPrivateCopy::strings, copies_out = HaulPrivateCopy::strings;
  // When this was measured, in Unix time (0: it was not, and these are usual figures), and how long
  // a message then took one way, in ns: of 4, 16, 64, 256 and 1024 KiB.
  std::uint64_t measured_at_s = 0;
  static constexpr unsigned size_count = 5;
  static constexpr std::size_t bytes_of(unsigned size) { return std::size_t{4096} << 2 * size; }
  double message_ns[size_count] = {};
};

// The planner's limits for messages (plan/messages.hpp), by this machine's stored figures, which
// each call reads from their file, or else by the defaults; or what the knobs HAUL_FABRIC_* say.
// Thread-safe; no lock.
struct HaulPrivateMessageLimits {
  // From the first on, a copy of small pages by the kernel may pay; from the second on it mostly
  // does.
  std::size_t kernel_try_from_bytes = 0, kernel_from_bytes = 0;
  bool kernel_fixed = false;  // the user has set both: nothing is tried
  // From here on copies through mappings mostly pass the caches by, as none holds a message until
  // it is used (paper 003, III-B: non-cacheable destinations).
  std::size_t stream_from_bytes = SIZE_MAX;
  bool stream_fixed = false;  // the user has set it: passing them by is not tried
  HaulPrivateRing near, far;  // between cores that share the last-level cache, and others
  // What a message takes that was asked for and comes through the ring, and each line of it
  // (plan/messages.hpp); by the defaults unless the machine was measured.
  bool measured = false;
  double ring_asking_ns = 0, ring_line_ns = 0;
};
extern "C" [[gnu::visibility("default")]] void haul_private_message_limits(
    HaulPrivateMessageLimits* limits);

// Stores how rings are written best, as measured now, beside this machine's other figures, which
// must be stored already (haul_tune()). HAUL_OK, or a negative haul_result, and haul_last_error()
// says why they are not kept. Blocks for the file system, some seconds at most. Thread-safe.
extern "C" [[gnu::visibility("default")]] int haul_private_keep_rings(const HaulPrivateRing* near,
                                                                      const HaulPrivateRing* far);

// Which last-level cache a CPU belongs to: the number of its first CPU, the same for all CPUs that
// share it; -1 where that is not known (yet). Wait-free.
extern "C" [[gnu::visibility("default")]] int haul_private_cache_of(int cpu) noexcept;

// For a call that overwrites [begin, end) whole and has come to `at` in it: makes missing pages at
// the front of [at, at + length), huge ones where the call fills them (memory/new_pages.hpp), or
// finds that they are there. How many bytes from `at` on may be written before it is called again.
// System calls, no lock; async-signal-safe.
extern "C" [[gnu::visibility("default")]] std::size_t haul_private_make_pages(
    std::uintptr_t begin, std::uintptr_t end, std::uintptr_t at, std::size_t length) noexcept;

// Huge pages that belong to destinations and lie aside until these have their bytes. The blocks of
// 2 MiB of one call's destination have places in a row; a place may be empty. Each word of `ranges`
// says which blocks a call has, in units of a block: the first one in its low bits, and above them
// how many; 0: none.
//
// A call is entered before it is given to a mover, and stays until its ticket is done; two calls
// have no block in common. So whoever carries out a call and finds a range that holds a block of
// it reads that very call's places.
struct HaulPrivateAsides {
  static constexpr std::size_t room = 64, block_bytes = std::size_t{2} << 20;
  static constexpr unsigned count_shift = 36;  // 57 bits of addresses, less 21
  std::atomic<std::uint64_t> ranges[room] = {};
  std::atomic<std::uintptr_t> places[room] = {};  // of the first block

  void enter(std::size_t call, std::uintptr_t begin, std::uint64_t blocks,
             std::uintptr_t first_place) noexcept {
    places[call].store(first_place, std::memory_order_relaxed);
    // Release: pairs with place_of().
    ranges[call].store(begin / block_bytes | blocks << count_shift, std::memory_order_release);
  }
  void leave(std::size_t call) noexcept { ranges[call].store(0, std::memory_order_relaxed); }

  // The place of this block's page; 0: it has none.
  std::uintptr_t place_of(std::uintptr_t block) const noexcept {
    constexpr std::uint64_t first_bits = (std::uint64_t{1} << count_shift) - 1;
    for (std::size_t call = 0; call < room; ++call) {
      // Acquire: pairs with enter().
      const std::uint64_t range = ranges[call].load(std::memory_order_acquire);
      const std::uint64_t offset = block / block_bytes - (range & first_bits);
      if (offset < range >> count_shift)
        return places[call].load(std::memory_order_relaxed) + offset * block_bytes;
    }
    return 0;
  }
};

// Gives a copy or a fill of whole pages to a mover and returns at once: into missing pages that the
// userfaultfd `userfault` watches, from memory that stays as it is until the ticket is done. Blocks
// whose page lies aside get this very page; the destination begins with a block then.
// `may_make_huge`: the program has not forbidden huge pages, so they are made where the call fills
// them, if the system and HAUL_MEMORY_HUGE allow. The caller serves whoever touches the
// destination. False: no mover takes it now, and nothing has been done. May make the mover
// (haul_wake()); not in a signal handler. Whoever carries it out passes the turnstile, the same for
// all calls and for good, with each page that is provided.
struct HaulPrivateDeferred {
  std::int32_t userfault = -1;
  bool may_make_huge = false;
  bool fills = false;
  std::uint8_t value = 0;  // of each byte, if it fills
  std::uintptr_t dst = 0, src = 0;
  std::size_t length = 0;
  const HaulPrivateAsides* asides = nullptr;  // for good; nullptr: nothing of the call's lies aside
  haul::Turnstile* turnstile = nullptr;       // nullptr: there is none
};
extern "C" [[gnu::visibility("default")]] bool haul_private_defer(const HaulPrivateDeferred* call,
                                                                  haul_ticket* ticket) noexcept;

// Gives a copy within this process to a mover and returns at once, as above: into private memory,
// whatever the rights of its pages are, from memory that may be read. A ticket that fails says that
// some bytes could not be moved: nobody else has moved them.
extern "C" [[gnu::visibility("default")]] bool haul_private_force_copy(
    std::uintptr_t dst, std::uintptr_t src, std::size_t length, haul_ticket* ticket) noexcept;

// Gives a copy within this process to a device, if one pays, and returns when its first part is
// there (mover/offload.hpp). source_cpu: which CPU has written the source; -1: nobody knows. False:
// none takes it, and nothing has been done. Not in a signal handler.
extern "C" [[gnu::visibility("default")]] bool haul_private_offload(void* dst, const void* src,
                                                                    std::size_t length,
                                                                    std::int32_t source_cpu,
                                                                    haul_ticket* ticket) noexcept;
// About how long, in ns, the device needs that has this request; 0: none has, or nobody knows.
extern "C" [[gnu::visibility("default")]] std::uint64_t haul_private_left_ns(
    const haul_ticket* ticket) noexcept;

// Registers memory by functions of another of haul's libraries, as memory/registrar.hpp has it, and
// a page as often as it is asked to. They are called within the calls below, on their threads, and
// may allocate.
struct HaulPrivateRegistrar {
  void* self = nullptr;
  // Registers whole pages. 0 and *region, never 0; or ENOMEM: there is no room for more; or another
  // errno.
  int (*pin)(void* self, std::uintptr_t address, std::size_t bytes,
             std::uint64_t* region) noexcept = nullptr;
  void (*unpin)(void* self, std::uint64_t region) noexcept = nullptr;
  std::size_t least_bytes = 0;  // fewer are not worth a registration of their own
};

// What such a registrar has registered, and stays so until the memory changes, up to
// HAUL_MEMORY_REGISTERED_BYTES (memory/region_cache.hpp). nullptr: there is no memory. Each is used
// by one thread at a time.
struct HaulPrivateRegions;
extern "C" [[gnu::visibility("default")]] HaulPrivateRegions* haul_private_open_regions(
    const HaulPrivateRegistrar* registrar) noexcept;

// One use of a region.
struct HaulPrivateHold {
  std::uint64_t region = 0;
  std::uintptr_t begin = 0;  // of what is registered: a page
  std::uint32_t place = 0;
};
// Holds a region that has all of [address, address + wanted), until it is released: a known one, or
// a new one, which may reach on into the `behind` bytes that will be wanted next; `before` bytes
// were. False: it would not stay registered (whoever wants it so registers it for this use), or
// cannot be, and nothing is held. Blocks for as long as registering takes.
extern "C" [[gnu::visibility("default")]] bool haul_private_hold_region(
    HaulPrivateRegions* regions, std::uintptr_t address, std::size_t wanted, std::size_t before,
    std::size_t behind, HaulPrivateHold* hold) noexcept;
extern "C" [[gnu::visibility("default")]] void haul_private_release_region(
    HaulPrivateRegions* regions, const HaulPrivateHold* hold) noexcept;
// Unregisters what has changed meanwhile, nearly free where nothing has; or `all` that is not held,
// where there is no room for other memory.
extern "C" [[gnu::visibility("default")]] void haul_private_tidy_regions(
    HaulPrivateRegions* regions, bool all) noexcept;
// Unregisters all, of which nothing is held. In a child of fork, whose handlers are running, it
// unregisters nothing: that is the parent's.
extern "C" [[gnu::visibility("default")]] void haul_private_close_regions(
    HaulPrivateRegions* regions, bool in_child) noexcept;

// Ends what is registered of [begin, end) and not in use: a device would go on finding pages there
// that the program's accesses wait for from now on. Blocks for as long as that takes; with signals
// blocked.
extern "C" [[gnu::visibility("default")]] void haul_private_tell_of_change(
    std::uintptr_t begin, std::uintptr_t end) noexcept;

// The calling thread's latest error, of Error::sentence_bytes bytes. libhaul.so.0 and
// libhaul-atomic.so.0 both define this function, and both call it by its symbol: where a process
// has loaded both, the definition that the loader finds first serves both, so haul_last_error()
// reports the library that failed last. Neither allocates nor blocks.
extern "C" [[gnu::visibility("default")]] char* haul_private_last_error(void);
