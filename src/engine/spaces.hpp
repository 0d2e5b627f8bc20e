// The table of open spaces: a small handle -> pid and pidfd, so that a reused pid is never mistaken
// for the peer; or a grant, or a device's own memory.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "base/os/descriptor.hpp"

namespace haul {

inline constexpr std::size_t max_spaces = 256;  // handle 0 is this process

// A handle is {generation 24, index 8}; index 0 alone names this process. The generation moves on
// at every close, so that a handle kept too long is `closed`, never another peer (until its index
// has been opened 2^24 times).

// Opens and probes (see haul_space_open). Thread-safe; blocks for a few system calls.
Expected<Space> open_space(pid_t pid) noexcept;

// The same for a process of which the caller holds a pidfd, where the pid (in this pid namespace)
// may have been given to another process since. Takes the descriptor over, also on failure.
Expected<Space> adopt_space(pid_t pid, int pidfd) noexcept;

// From now on acquire_space() refuses the handle; the last transfer that has it pinned closes the
// descriptor. Never blocks. invalid: self_space, or a handle that is not open.
Code close_space(Space space) noexcept;

// Is the handle open now? Lock-free; for submit's check.
bool space_open(Space space) noexcept;

// Pins the entry while a transfer runs, so that pid and pidfd stay what they are. Lock-free. `code`
// is ok or closed.
struct SpaceUse {
  Code code = Code::closed;
  pid_t pid = 0;
  os::Descriptor pidfd;       // none for this process; may be lost: the program has closed it
  std::uint64_t started = 0;  // when the process began (os::process_start()); 0: not known
  // The peer's memory is this process's own (or was, before a fork).
  bool own_memory = false;
};
SpaceUse acquire_space(Space space) noexcept;
void release_space(Space space) noexcept;  // once for each acquire that returned ok

// A handle for memory that another process has granted (haul_share()): only the node's service
// reaches it, so it is never acquired. no_memory if every entry is taken.
Expected<Space> open_grant_space() noexcept;
// Is it such a handle, open now? Lock-free; for submit's check.
bool is_grant(Space space) noexcept;

// The memory of a device that lies apart from every process's: who reaches it, and what that engine
// calls it (Engine::open_memory()).
struct DeviceMemory {
  std::uint8_t engine = 0;   // its number; 0: it is no device's
  std::uint64_t region = 0;  // never 0 where it is one's

  explicit operator bool() const noexcept { return engine != 0; }
};
// A handle for such memory. no_memory if every entry is taken.
Expected<Space> open_memory_space(DeviceMemory memory) noexcept;
// What it stands for, if it is such a handle and open now. Lock-free; for submit's check.
DeviceMemory device_memory(Space space) noexcept;

// Do both name the same process's or device's memory? (Two handles of one peer do, or a handle of
// this very process and self.)
bool same_memory(Space a, Space b) noexcept;

}  // namespace haul
