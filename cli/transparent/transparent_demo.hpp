// The demo's stop about unmodified programs.
#pragma once

namespace haul::cli {

// Runs this machine's python3, which copies 16 MiB a few times, with and without libhaul-mem.so in
// turns, compares what it prints, and shows the times. If something is missing for that, one line
// says what.
void show_unmodified_program();

}  // namespace haul::cli
