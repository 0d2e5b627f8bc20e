// The threads of any process, as /proc lists them.
#pragma once

#include <sys/types.h>

namespace haul::os {

// Calls see(thread, context) for each thread of a process, an ended main thread included, until it
// returns false. `directory` is /proc/PID/task, or /proc/self/task, which is this process's even
// where /proc belongs to another pid namespace; the ids are those of /proc. False if it cannot be
// read. Opens the directory, allocates nothing.
bool for_each_task(const char* directory, bool (*see)(pid_t thread, void* context),
                   void* context) noexcept;

}  // namespace haul::os
