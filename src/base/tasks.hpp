// The threads of any process, as /proc lists them.
#pragma once

#include <sys/types.h>

namespace haul::os {

// Calls see(thread, context) for each thread of a process, ended main threads among them, until it
// says false; for none where /proc does not tell. Opens a directory, allocates nothing.
void for_each_task(pid_t process, bool (*see)(pid_t thread, void* context), void* context) noexcept;

}  // namespace haul::os
