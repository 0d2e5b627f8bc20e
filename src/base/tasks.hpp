// The threads of any process, as /proc lists them.
#pragma once

#include <sys/types.h>

namespace haul::os {

// Calls see(thread, context) for each thread of a process, ended main threads among them, until it
// says false. `directory`: /proc/PID/task, or /proc/self/task, which is this process's also where
// /proc is another pid namespace's; the ids are those of /proc. False if it does not tell. Opens
// the directory, allocates nothing.
bool for_each_task(const char* directory, bool (*see)(pid_t thread, void* context),
                   void* context) noexcept;

}  // namespace haul::os
