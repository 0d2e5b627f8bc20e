// Memory that is not there yet, and writes that must wait: userfaultfd(2). A thread that touches a
// missing page of a watched range, or writes to a protected one, is held by the kernel until
// whoever reads the descriptor has provided the page or lifted the protection. That is so for
// system calls that are given such memory, too.
//
// Each function is one system call, from any thread; ranges are whole pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::os {

// Opens a non-blocking, close-on-exec descriptor for this process's memory, which also serves the
// kernel's own accesses and tells of unmapped and moved ranges. Needs Linux 6.4, and root's rights,
// access to /dev/userfaultfd or vm.unprivileged_userfaultfd=1. -errno: EPERM without the rights,
// EINVAL on an older kernel. A child of fork inherits a descriptor of its parent's memory.
int open_userfault() noexcept;

// The same for unmapped and moved ranges and pages given back alone, which needs Linux 5.11 and no
// rights: nobody's access is ever held. A range is watched for `writes`, none of which are
// protected.
int open_memory_events() noexcept;

// What a range is watched for; a range may be watched once.
enum class WatchFor : std::uint8_t { missing, writes };
// 0 or -errno: EBUSY where the program watches it itself, EINVAL where it is not private memory.
int watch(int fd, std::uintptr_t begin, std::size_t bytes, WatchFor what) noexcept;
// Ends it, lifts protection, and lets go whoever is held.
int unwatch(int fd, std::uintptr_t begin, std::size_t bytes) noexcept;
// Lets whoever is held by a page of the range try again.
void wake_held(int fd, std::uintptr_t begin, std::size_t bytes) noexcept;

// From now on writes to the range are held (missing pages included), or no longer.
int protect_writes(int fd, std::uintptr_t begin, std::size_t bytes, bool protect) noexcept;

// Provides missing pages with the bytes at `from`, at once as far as other threads see, and lets go
// whoever is held there. How many bytes from the front, at least a page, or -errno: EEXIST, the
// first page is there; ENOENT, it is not watched, or the range is more than one mapping; EAGAIN, an
// event waits to be read; EFAULT, the source is not readable.
std::int64_t provide(int fd, std::uintptr_t to, std::uintptr_t from, std::size_t bytes) noexcept;

// Moves pages from `from` to missing pages of a watched range, as they are: at once, as far as
// other threads see, and they leave missing ones behind. How many bytes, or -errno: EBUSY, a page
// is shared with a child, or a device has it; EINVAL, the two mappings have other rights, or are
// not private memory; otherwise as provide(). Needs Linux 6.8.
std::int64_t move_pages(int fd, std::uintptr_t to, std::uintptr_t from, std::size_t bytes) noexcept;

// What the descriptor tells.
struct FaultEvent {
  enum class Kind : std::uint8_t {
    missing,   // somebody is held by the missing page at `begin`
    write,     // by the protected page at `begin`
    moved,     // [begin, end) now lies at `to`, and is still watched (mremap())
    removed,   // the pages of [begin, end) were given back (madvise()), or
    unmapped,  // the range is gone
  };
  Kind kind = Kind::missing;
  std::uintptr_t begin = 0, end = 0, to = 0;
};
// The next one; false: there is none now. The thread that caused one of the last three is held
// until it has been read.
bool next_event(int fd, FaultEvent* event) noexcept;
// Is there one? And does one of the last three wait to be read? (False: there is none, or those
// that hold a thread come first.)
bool any_event(int fd) noexcept;
bool changes_wait(int fd) noexcept;
// Sleeps until there is one, or the time is up.
void await_events(int fd, std::uint64_t timeout_ns) noexcept;

}  // namespace haul::os
