// Runs work that a file system may stall where it stalls nothing else.
//
// A thread that waits for a file on a hung network mount waits until the server answers; on a hung
// FUSE mount (sshfs, lxcfs) not even SIGKILL ends the wait, and a process with such a thread cannot
// be reaped. So such work runs on a thread of its own, which nobody joins; and where any FUSE file
// system is mounted, that thread leaves it to a helper process, whose end it waits for by a wait
// that can itself be ended. Both have a descriptor table of their own: the program's closefrom()
// and dup2() do not touch haul's files there, and no pipe of the program's stays open.
#pragma once

namespace haul::os {

// A piece of work, in static storage, since a stalled one is never given up.
struct Apart {
  const char* name;                       // of the thread, 15 bytes
  void (*body)(void* argument) noexcept;  // takes no lock, keeps no descriptor, starts no thread
  void* argument;                         // in static storage too
};

// Starts the work and returns 0 or -errno. The body signals by itself when it is done. It runs
// once, with asynchronous signals blocked, and may use thread-local storage that nobody else uses.
// It does not go on in the child of a fork.
int start_apart(const Apart& work) noexcept;

// The same on the calling thread, which is an aide (aide.hpp) for such work alone; returns when it
// is done.
void run_apart(const Apart& work) noexcept;

// The same on a thread that keeps the process's descriptors: the helper, if there is one, has `fd`
// only. (Without a helper, a stalled thread keeps them open no longer than the process lives.)
void run_apart_with(int fd, const Apart& work) noexcept;

// Gives the calling thread an empty descriptor table of its own. False if the kernel or a filter
// refuses that; then nothing is closed.
bool own_descriptors() noexcept;
// The same, but with this descriptor, under its number.
bool keep_alone(int fd) noexcept;

// Is there a mount on which a wait cannot be ended? `table` is laid out as /proc's mountinfo.
bool has_unkillable_mounts(const char* table) noexcept;

}  // namespace haul::os
