// How many threads want a CPU just now.
#pragma once

namespace haul {

// The threads of the whole machine that run or wait for a CPU, the caller among them; 0: not known.
// The file is laid out as /proc/loadavg.
unsigned runnable_threads(const char* file) noexcept;

// Does each CPU that is online have a thread that runs or waits, the caller's aside? Opens a file:
// about 4 us. False where nobody knows. Any thread.
bool cpus_are_taken() noexcept;

// Are there more than two for each CPU online? Then whoever waits for a thread on another CPU (the
// kernel's own ones, too) waits for its turn there: milliseconds, and up to seconds. Opens a file:
// about 4 us. False where nobody knows. Any thread, signal handlers too.
bool cpus_are_crowded() noexcept;

}  // namespace haul
