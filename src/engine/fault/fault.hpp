// The engine that fails on purpose: for tests, and for users who want to see their program survive
// it.
#pragma once

#include <cstddef>

namespace haul {

// How many pieces it holds before it answers `full`.
inline constexpr std::size_t fault_slots = 16;

// Tests: gives the engine a schedule (fault/schedule.hpp; NULL: what HAUL_ENGINE_FAULT says),
// forgets accepted pieces, counts pieces from 1 again and brings it back to life. For text that is
// not a schedule it warns once and passes everything through. Not while any thread submits or
// polls.
void configure_fault(const char* schedule) noexcept;

}  // namespace haul
