// Measuring the figures that a plan rests on, with the movers that will do the work.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "tune/trust.hpp"

namespace haul::tune {

inline constexpr unsigned max_runs = 101;

// How the measuring is going; called on the measuring thread.
struct Watch {
  void (*progress)(int percent, void* context) = nullptr;
  void* context = nullptr;
  unsigned runs = 15;  // of each kind, for a median; 1 to max_runs
  // How long to wait until the mover is awake and its distance known; the mover spins meanwhile.
  unsigned patience_ms = 3000;
  // The limit on the measuring thread's CPU time, at which it stops and fails with timed_out.
  std::uint64_t cpu_limit_ns = 0;
  std::uint64_t pause_ns = 0;  // sleeps this long between the small steps, so that others run
};

// Runs copies of all kinds on the calling thread and on the mover, which it keeps awake. Fails if
// there is no mover, or if it does nothing for seconds. Maps 16 MiB. Takes no lock that a fork
// waits for. The figures are as measured; the caller adds to their quality how much was stolen
// (trust.hpp).
Expected<Measured> measure(const Watch& watch) noexcept;

// ns a line of copies in the nearest cache, now; 0 where there is no memory. Takes some 50 us.
double hot_line_now() noexcept;

}  // namespace haul::tune
