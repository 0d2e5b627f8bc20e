// The calibration's file as the rest of a process may reach it: through a thread of its own
// ("haul-files", base/apart.hpp), for a home directory may not answer. Nobody waits for that longer
// than it says here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "tune/cpu_times.hpp"
#include "tune/trust.hpp"

namespace haul::tune {

// What load_calibration() and store_calibration() give for the default path. Code::timed_out: the
// file system does not answer, or has not answered somebody before. Afterwards the machine's key is
// known, unless that is what was waited for. Any thread, one after the other.
Expected<Measured> load_patiently(std::uint64_t patience_ns) noexcept;
Error store_patiently(const Measured& measured, std::uint64_t patience_ns) noexcept;

// The real /proc/stat; not known where that does not answer.
CpuTimes cpu_times_patiently(std::uint64_t patience_ns) noexcept;

// Has somebody's patience ended, and the file system still not answered?
bool files_stall() noexcept;
// The sentence, of at most `size` bytes, that says what is waited for; "" if there is nothing.
void describe_stall(char* sentence, std::size_t size) noexcept;

}  // namespace haul::tune
