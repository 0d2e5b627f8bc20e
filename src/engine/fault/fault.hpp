// The engine that fails on purpose: for tests, and for whoever wants to see a program of theirs
// survive it.
#pragma once

#include <cstddef>

namespace haul {

// How many pieces it holds before it answers `full`.
inline constexpr std::size_t fault_slots = 16;

// Tests: gives the engine a schedule (fault/schedule.hpp; NULL: what HAUL_ENGINE_FAULT says),
// forgets accepted pieces, counts pieces from 1 again and brings it back to life. Text that is no
// schedule warns once and passes everything through. Not while anybody submits or polls.
void configure_fault(const char* schedule) noexcept;

}  // namespace haul
