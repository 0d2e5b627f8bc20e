// What is to be known of the machine, read by a thread of its own: the files lie in sysfs and
// cgroups, and where lxcfs stands for those they may not answer.
#pragma once

#include <cstdint>

#include "base/topology.hpp"

namespace haul {

// Has the machine looked at (thread "haul-survey"), once a process; does nothing while that is
// under way or done. For the program's threads (base/aide.hpp).
void start_survey() noexcept;

// Waits at most so long while that is under way; true if it is not (any more). Any thread.
bool await_survey(std::uint64_t timeout_ns) noexcept;

// What was found, or nullptr while there is nothing; it stays where it is. Any thread.
const Topology* surveyed() noexcept;

// In a child of fork: one that was under way there is none.
void forget_survey() noexcept;

}  // namespace haul
