// Runs work in the background.
#pragma once

#include <functional>
#include <string>

namespace haul::cli {

// Runs `work` in a process with a session of its own, its standard streams at /dev/null, its
// working directory /, and every other descriptor closed. Asks `ready` again and again, and returns
// once it says true. Throws tools::CommandFailure with the sentence of what `work` threw before
// that, or after 10 s without an answer. Only the caller returns. Call it while the process has one
// thread.
void run_detached(const std::function<void()>& work, const std::function<bool()>& ready);

}  // namespace haul::cli
