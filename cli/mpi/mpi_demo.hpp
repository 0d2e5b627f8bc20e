// The demo's stop about messages: this machine's MPI, unmodified, with and without haul.
#pragma once

#include <string>

namespace haul::cli {

// Compiles a small benchmark with an MPI that is here, runs it on haul and on the MPI's own shared
// memory in turn, on the CPUs of `cpus` ("0,1"), and shows both. Says in one line what is missing
// where that cannot be.
void show_messages(const std::string& cpus);

}  // namespace haul::cli
