// How the rest of a process reaches the calibration's file: through a thread of its own
// ("haul-files", base/thread/apart.hpp), since a home directory may not answer. No caller waits for
// that longer than it says here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "tune/cpu_times.hpp"
#include "tune/trust.hpp"

namespace haul::tune {

// What load_calibration() and store_calibration() return for the default path. Code::timed_out: the
// file system does not answer, or has not answered an earlier caller. Afterwards the machine's key
// is known, unless that is what was waited for. Any thread, one after the other.
Expected<Measured> load_patiently(std::uint64_t patience_ns) noexcept;
Error store_patiently(const Measured& measured, std::uint64_t patience_ns) noexcept;

// Reads the real /proc/stat; unknown if that does not answer.
CpuTimes cpu_times_patiently(std::uint64_t patience_ns) noexcept;

// Has a caller given up waiting, and has the file system still not answered?
bool files_stall() noexcept;
// Writes a sentence, of at most `size` bytes, that says what is waited for; "" if nothing is.
void describe_stall(char* sentence, std::size_t size) noexcept;

}  // namespace haul::tune
