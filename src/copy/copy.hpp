// How a CPU moves and fills bytes: memmove and memset with a cache affinity for each side.
//
// All functions: any thread, signal handlers included; no allocation, no lock, no system call, no
// call into libc (this code runs underneath an interposed memcpy). An address that is not mapped
// raises SIGSEGV in the caller. Non-temporal stores and flushes are fenced before the return, so
// that an ordinary release store afterwards publishes the bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/affinity.hpp"

namespace haul::copy {

// Instruction sets, each including the one before. `portable` is what every x86-64 has.
enum class Level : std::uint8_t { portable, avx2, avx512 };

// The highest level that this CPU and its operating system support.
Level best_level() noexcept;

// A large copy may be made in consecutive calls, so that progress can be published in between.
// Pieces of this size cost 2 % against one call (16 KiB: 6 %, 4 KiB: 15 %), if each is told the
// length of the whole.
inline constexpr std::size_t piece_bytes = 64 * 1024;

// memmove(dst, src, len) with affinities; len 0 is fine.
//
// cacheable:     ordinary loads and stores. A destination larger than the last-level cache cannot
//                stay in it, and is streamed past it.
// non-cacheable: the destination's whole lines are stored non-temporally; the source's whole lines
//                are flushed behind the read. The partial lines at both ends belong to a neighbour
//                too and are left cached.
// neutral:       a timed read every few pages tells whether that side is in the cache; that stretch
//                is then moved as cacheable or as non-cacheable. Best effort. Below 64 KiB as
//                cacheable.
// Affinities are ignored below 256 bytes and where source and destination overlap.
//
// whole_bytes: the length of the whole copy, if this call makes a piece of one: the piece is then
// moved in the manner of the whole.
void move_bytes(void* dst, const void* src, std::size_t len, Affinity dst_affinity,
                Affinity src_affinity, std::size_t whole_bytes = 0) noexcept;

// memcpy for a source that another core may just have written: from the front to the back, each
// line read once, by loads alone. To ask for such lines ahead, or to begin with the last ones as
// move_bytes() does, takes longer (a Zen 3, 64 KiB in cells of 8: 1.07 times between cores that
// share a cache, 1.28 between others). len 0 is fine.
void move_in_order(void* dst, const void* src, std::size_t len) noexcept;

// Repeats the low pattern_bytes (1, 2, 4 or 8) of pattern, in memory order, from dst[0] on; dst and
// len need no alignment. Affinity as above.
void fill_bytes(void* dst, std::size_t len, std::uint64_t pattern, unsigned pattern_bytes,
                Affinity dst_affinity) noexcept;

// The same pattern, replicated to 8 bytes.
std::uint64_t widen_pattern(std::uint64_t pattern, unsigned pattern_bytes) noexcept;

// For tests, tune and bench: copies at one level. False, with nothing done, if this CPU does not
// support it.
bool move_bytes_at(Level level, void* dst, const void* src, std::size_t len, Affinity dst_affinity,
                   Affinity src_affinity, std::size_t whole_bytes = 0) noexcept;
bool move_in_order_at(Level level, void* dst, const void* src, std::size_t len) noexcept;
bool fill_bytes_at(Level level, void* dst, std::size_t len, std::uint64_t pattern,
                   unsigned pattern_bytes, Affinity dst_affinity) noexcept;

}  // namespace haul::copy
