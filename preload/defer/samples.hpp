// Single pages, small or huge ones, that are watched for their first touch, to learn how far from a
// copy it comes.
//
// A page of a copy's destination is put aside as it is (UFFDIO_MOVE), and whoever touches it is
// held until it is back; a page of a source is protected against writes. The first touch is served
// by the thread that serves pending calls (touches.hpp), is counted, and ends the sample. A page
// that nobody touches comes back after a second.
//
// All is under the lock of watched.hpp. What the kernel cannot do now, since an event waits to be
// read, is done by a later call: whoever is held waits meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/defer/watched.hpp"
#include "preload/mem/sites.hpp"

namespace haul::preload {

enum class Side : std::uint8_t { destination, source };

// Begins one; no pending call may have the page, which is one small page or one huge page. Nothing
// comes of it where the page is sampled already, the kernel refuses (the page is locked, or shared
// with a child), or the table is full.
void begin_sample(const Bounds& page, Side side, DistanceTally& tally) noexcept;

// Was the address that somebody touched a sample's? Then it is served.
bool serve_sampled(std::uintptr_t address, Side side) noexcept;
// The program has moved pages without libc. False: some of their samples have not ended yet.
bool move_sampled(const Bounds& from, std::uintptr_t to) noexcept;
// It has given pages back without libc.
void forget_sampled(const Bounds& range) noexcept;

// Ends the samples in the range. `given_back`: the program gives these pages back, so they are
// counted as never touched. False: some have not ended yet.
bool end_samples(const Bounds& range, bool given_back) noexcept;
// Those that are a second old, and those that could not end before. False as above.
bool end_old_samples() noexcept;

// From now on none begins; there must be none.
void sample_no_more() noexcept;

// At the start, and for a child of fork.
void forget_samples() noexcept;

}  // namespace haul::preload
