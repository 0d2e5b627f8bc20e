// The socket of the link to the node's service. One place opens it, closes it and writes to it, so
// that a descriptor which haul has closed, or which the program has closed and used for something
// else, is never written to.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace haul {

// Connects to a service without waiting for the service; but it may wait for a file system, holding
// no lock. 0, or -errno; -ESHUTDOWN once it was told to stay shut; -EAGAIN while a fork is
// under way (the child must know of the descriptor, to close it). The link's thread only.
int open_link_socket() noexcept;
void close_link_socket() noexcept;
// Is it open, or being opened, and not closed since (by haul)?
bool link_socket_open() noexcept;
// The socket; -1 if there is none, or if the program has closed it or put a file of its own at its
// number. A system call.
int link_socket_fd() noexcept;

// Says whether tell_service() may send, which it may from the service's welcome on.
void allow_telling(bool yes) noexcept;
// May the service be using memory of this process? From the welcome on, until it is known to have
// let go. (That stays unknown where the socket was shut at once.)
bool service_may_use_memory() noexcept;

// Sends a message; while the service does not read, waits for up to patience_ns. closed: there is
// no service; timed_out: it does not read. Holds no lock while it waits.
Code tell_service(const void* message, std::size_t bytes, std::uint64_t patience_ns,
                  const int* fds = nullptr, unsigned fd_count = 0) noexcept;

// If *bell says that the service sleeps, wakes it, once. To be called in the middle of a publish,
// which keeps it open.
void ring_service_bell(std::atomic<std::uint32_t>* bell) noexcept;
// The same at any other time.
void wake_service() noexcept;

// For the end of the process: no socket is opened any more, and the service reads "closed"; what
// it sends can still be read until it has let go of this process. at_once: not even that.
void shut_link_socket(bool at_once) noexcept;

// For a child of fork, which has no socket and may open one.
void forget_link_socket() noexcept;

}  // namespace haul
