// Work that a file system may stall, done where it stalls nothing else.
//
// A thread that waits for a file on a hung network mount waits until the server answers; on a hung
// FUSE mount (sshfs, lxcfs) the kernel lets not even SIGKILL end it, and a process whose thread
// waits so cannot be reaped. So such work runs on a thread of its own, which nobody joins; and
// where a FUSE file system is mounted at all, that thread has it done by a helper process, for
// which it waits and can be ended. Both have a descriptor table of their own: the program's
// closefrom() and dup2() do not meet haul's files there, and no pipe of the program's stays open.
#pragma once

namespace haul::os {

// A piece of work. In static storage: a stalled one is never given up.
struct Apart {
  const char* name;                       // of the thread, 15 bytes
  void (*body)(void* argument) noexcept;  // takes no lock, keeps no descriptor, starts no thread
  void* argument;                         // in static storage too
};

// Starts it and returns: 0 or -errno. The body says by itself when it is done. It runs once, with
// asynchronous signals blocked, and may use thread-local storage that nobody else uses. In the
// child of a fork it does not go on.
int start_apart(const Apart& work) noexcept;

// The same on the calling thread, an aide (aide.hpp) that does such work alone, until it is done.
void run_apart(const Apart& work) noexcept;

// The same on a thread that keeps the process's descriptors: the helper, if there is one, has `fd`
// alone. (Without one a stalled thread keeps none of them longer than its process lives.)
void run_apart_with(int fd, const Apart& work) noexcept;

// Gives the calling thread a descriptor table of its own, with nothing in it. False where the
// kernel or a filter refuses that; then nothing is closed.
bool own_descriptors() noexcept;

// Is there a mount on which a wait cannot be ended? `table` is laid out as a mountinfo of /proc.
bool has_unkillable_mounts(const char* table) noexcept;

}  // namespace haul::os
