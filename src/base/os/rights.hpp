// The rights with which the calling thread acts, which the kernel checks when it is asked for
// another process's memory. Each thread has its own: setuid() and the like change those of all
// threads of a process, but a raw system call, as file servers use it, changes one thread's.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace haul::os {

struct Rights {
  std::uint32_t user[3] = {}, group[3] = {};  // real, effective, saved
  std::uint64_t capabilities = 0;             // the effective ones

  bool operator==(const Rights&) const = default;
};

// Three system calls, 0.3 us in all. (Supplementary groups, security labels and seccomp filters
// belong to each thread as well, and are not looked at.)
Rights rights_of_this_thread() noexcept;

// The real, effective, saved and file-system user of a process's main thread, from /proc. False if
// that cannot be read. Some 20 us.
bool users_of(pid_t process, std::uint32_t (&users)[4]) noexcept;

// Does this process act for two users at once, because its program file is set-user-id,
// set-group-id or has capabilities, or because it has put some of its rights aside? If so, nothing
// that its invoker may change must steer it.
bool rights_are_mixed() noexcept;

}  // namespace haul::os
