// The node's mover as a process: one thread that copies for every process of a user.
#pragma once

#include "service/clients/options.hpp"

namespace haul::service {

// Runs until it is asked to stop, or until the idle exit. Throws std::runtime_error with a sentence
// of cause and remedy if it cannot start. One at a time in a process; raises the process's soft
// limit of descriptors.
void run(const Options& options);

// Ends run(), also one that begins later. Async-signal-safe; any thread.
void request_stop() noexcept;

}  // namespace haul::service
