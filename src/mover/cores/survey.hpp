// Reads what haul must know of the machine on a thread of its own: the files lie in sysfs and
// cgroups, and where lxcfs provides them they may not answer.
#pragma once

#include <cstdint>

#include "base/machine/topology.hpp"

namespace haul {

// Starts the thread "haul-survey", once a process; does nothing while it runs or when it is done.
// For the program's threads (base/thread/aide.hpp).
void start_survey() noexcept;

// Waits for at most timeout_ns while the survey runs; true if it does not, or not any more. Any
// thread.
bool await_survey(std::uint64_t timeout_ns) noexcept;

// What the survey found, or nullptr before that; it stays where it is. Any thread.
const Topology* surveyed() noexcept;

// For a child of fork: a survey that the parent had under way does not exist there.
void forget_survey() noexcept;

}  // namespace haul
