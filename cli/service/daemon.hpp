// Going on in the background.
#pragma once

#include <functional>
#include <string>

namespace haul::cli {

// Runs `work` in a process of its own: its own session, standard streams at /dev/null, working
// directory /, every other descriptor closed. The caller returns once `ready` says true, which it
// is asked again and again; it throws tools::CommandFailure with the sentence of what `work` threw
// before that, or if nothing happens for 10 s. Only the caller returns. Before the process has
// threads.
void run_detached(const std::function<void()>& work, const std::function<bool()>& ready);

}  // namespace haul::cli
