// The demo's stop about messages: this machine's own MPI, unmodified, with haul and without.
#pragma once

#include <string>

namespace haul::cli {

// Compiles a small benchmark with an MPI of this machine, runs it in turn on haul and on the MPI's
// own shared memory, on the CPUs in `cpus` ("0,1"), and shows both. If something is missing for
// that, one line says what.
void show_messages(const std::string& cpus);

}  // namespace haul::cli
