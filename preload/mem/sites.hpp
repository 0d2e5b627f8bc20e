// The places in the program that make large calls, and what came of them. The table lies in memory
// that `haul run` may have shared with this process through a file, so that it can be read after
// the process has gone, however it went.
//
// Sites are found by hashing; an entry is taken by a compare-and-swap on its address and never
// given back. Counts are relaxed: nothing is decided by them that would be wrong with an older
// count.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace haul::preload {

// How a call is carried out: by libc; by the caller, who makes the pages first; by the caller and
// haul's mover; by the mover alone, after the call has returned, into memory that a userfaultfd
// watches, or that mprotect() protects.
enum class Way : std::uint8_t { libc, caller, together, deferred, protected_ };
inline constexpr std::size_t way_count = 5;
// The destination's, when the call began. Whether they are huge is asked by a profile alone, which
// leaves short calls unasked mostly.
enum class Pages : std::uint8_t { there, missing, huge, unasked };
inline constexpr std::size_t pages_count = 4;
// Lengths are told apart by powers of four: from 32 KiB, 128 KiB, ... 128 MiB on.
inline constexpr std::size_t size_classes = 7;
inline constexpr std::size_t least_bytes = std::size_t{32} << 10;
// A copy of fewer bytes takes less than a deferred one's preparations and touches.
inline constexpr std::size_t deferred_from_bytes = std::size_t{2} << 20;
// And into huge pages that are there: a shorter copy takes the caches' time, not the memory's.
inline constexpr std::size_t deferred_there_from_bytes = std::size_t{16} << 20;
constexpr std::size_t size_class(std::size_t length) noexcept {
  std::size_t which = 0;
  for (length /= 4 * least_bytes; length != 0 && which < size_classes - 1; length >>= 2) ++which;
  return which;
}

// How long after a call something happened, told apart by powers of eight: below 8 us, 64 us, 512
// us, 4 ms, 33 ms, 268 ms; later; and never, since the memory was given back before.
inline constexpr std::size_t distance_classes = 8, distance_never = distance_classes - 1;
constexpr std::uint64_t distance_below_ns(std::size_t which) noexcept {
  return std::uint64_t{8000} << (3 * which);
}
constexpr std::size_t distance_class(std::uint64_t ns) noexcept {
  std::size_t which = 0;
  while (which < distance_never - 1 && ns >= distance_below_ns(which)) ++which;
  return which;
}
// Is all of this class at least so far off?
constexpr bool is_as_far(std::size_t which, std::uint64_t ns) noexcept {
  return which != 0 && distance_below_ns(which - 1) >= ns;
}
struct DistanceTally {
  std::atomic<std::uint32_t> counts[distance_classes];
};
// Of the calls that were sampled: from the call to the first use of its destination, and to the
// first write of its source.
struct CallDistances {
  DistanceTally use, write;
};

struct WayTally {
  std::atomic<std::uint64_t> calls, bytes, ns;
  // The last times for a MiB, as an average that forgets; 0: none yet. A deferred or protected
  // call's includes the waits for its bytes.
  std::atomic<std::uint64_t> recent_ns_per_mib;
  // When it was last tried, or lost, by the time that calls of its kind had taken; how often its
  // loss must be spent before it is tried again. 0: not tried yet.
  std::atomic<std::uint64_t> tried_at_ns;
  std::atomic<std::uint32_t> patience;
};

struct CallClass {
  WayTally ways[way_count];
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint32_t> seen;  // by whoever samples
  std::atomic<std::uint8_t> best;   // the Way of late, once there were calls

  WayTally& tally(Way way) noexcept { return ways[static_cast<std::size_t>(way)]; }
  std::uint64_t spent_ns() const noexcept {
    std::uint64_t all = 0;
    for (const WayTally& way : ways) all += way.ns.load(std::memory_order_relaxed);
    return all;
  }
};

struct Site {
  std::atomic<std::uint64_t> address;  // the return address; 0: free
  std::atomic<std::uint32_t> named;    // the next two are complete
  std::uint64_t file_offset;           // of the address in its module; 0 for none
  char module[240];                    // its path, or what /proc/self/maps calls it
  CallClass kinds[pages_count][size_classes];
  CallDistances distances[size_classes];

  CallClass& kind(Pages pages, std::size_t length) noexcept {
    return kinds[static_cast<std::size_t>(pages)][size_class(length)];
  }
};

// Why calls of the program were not shared with a mover, or not deferred.
enum class NotShared : std::uint8_t {
  handled_faults,  // the program handles SIGSEGV or SIGBUS
  not_calm,        // no thread can be made there: signals blocked, or within an allocator
  no_mover,        // haul has none for this process, or all is full
  no_userfault,    // nobody can serve those who touch a deferred call's memory
  not_private,     // a side is a file's or shared, or the caller's stack
  not_writable,    // the kernel lets no mover write to protected memory, or counts what may be
                   // written
};
inline constexpr std::size_t refusal_count = 6;

inline constexpr std::uint32_t table_magic = 0x6d656d36;
struct Table {
  static constexpr std::size_t room = 256;

  std::uint32_t magic;
  std::uint32_t pid;
  char program[256];
  std::atomic<std::uint64_t> refusals[refusal_count];
  std::atomic<std::uint64_t> used, nameless;  // sites; calls whose site found no room
  std::atomic<std::uint64_t> touches;         // how often a call's bytes were waited for
  Site sites[room];
};

// Makes the table: in a new file of the directory, or, if that is nullptr or refuses, in memory of
// this process alone. Once, before any call is taken over.
void make_table(const char* directory) noexcept;
// Removes the file if nobody is in the table: most processes of a shell script copy nothing much.
void remove_empty_table() noexcept;

// The entry of this place; nullptr if the table is full or there is none. No lock, no allocation;
// for a new place it reads /proc/self/maps.
Site* site_of(std::uintptr_t address) noexcept;

void count_refusal(NotShared why) noexcept;
void count_touches(std::uint64_t all) noexcept;

// How long all calls of this process took so far.
std::uint64_t spent_ns() noexcept;

// Does a call return before its bytes are there?
constexpr bool returns_early(Way way) noexcept {
  return way == Way::deferred || way == Way::protected_;
}

// Adds what an early call of that tally has cost its program besides, by the time its bytes are
// there: together with the call's own time, of which note() knows, this is the sample.
void note_waits(WayTally& tally, std::size_t length, std::uint64_t call_ns,
                std::uint64_t waited_ns) noexcept;

// A way that could not be taken counts as a slow one, until it is tried again.
void note_refused(WayTally& tally) noexcept;

// Adds a call.
void note(Site* site, Pages pages, std::size_t length, Way way, std::uint64_t ns) noexcept;

}  // namespace haul::preload
