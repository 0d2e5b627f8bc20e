// Unix sockets that keep message boundaries and carry descriptors (SOCK_SEQPACKET), and listening
// ones of streams. Nothing here raises SIGPIPE; sends never block.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace haul::os {

inline constexpr unsigned max_packet_fds = 4;

enum class SocketKind { packets, stream };

// A socket that listens at `path` (mode 0600). A socket file at which nobody listens is replaced.
// fd, -EADDRINUSE if another listens there, or -errno. Non-blocking, close-on-exec.
int listen_at(const char* path, SocketKind kind = SocketKind::packets) noexcept;
// Accepts the next connection: fd (non-blocking, close-on-exec), -EAGAIN if none waits, or -errno.
int accept_from(int listener) noexcept;
// Connects without waiting: fd (non-blocking, close-on-exec), or -errno (-ENOENT, -ECONNREFUSED:
// nobody listens; -EAGAIN: too many wait).
int connect_to(const char* path) noexcept;
// The two halves of that, for a file system that may not answer: a socket (fd or -errno), which
// then connects (0 or -errno; it may try again elsewhere).
int packet_socket() noexcept;
int connect_socket(int fd, const char* path) noexcept;
// The same for a name without a file (abstract, given without the leading NUL): gone with the
// socket, and of one network namespace.
int listen_abstract(const char* name, int backlog) noexcept;
int connect_abstract(const char* name) noexcept;

// The process that connected (for an accepted socket), or that called listen() (for a connected
// one).
struct SocketPeer {
  pid_t pid = 0;  // as seen from here; 0 if it has none in this pid namespace
  unsigned uid = ~0u;
};
bool peer_of(int fd, SocketPeer* peer) noexcept;
// A pidfd of the process that connected, or -errno. (SO_PEERPIDFD, else pidfd_open.)
int peer_pidfd(int fd) noexcept;

// Sends one packet with `fd_count` descriptors. Returns its bytes, or -errno: -EAGAIN if the other
// side does not read, -EPIPE or -ECONNRESET if it is gone.
ssize_t send_packet(int fd, const void* data, std::size_t bytes, const int* fds = nullptr,
                    unsigned fd_count = 0) noexcept;
// Receives one packet and up to max_packet_fds descriptors into fds (close-on-exec; *fd_count of
// them, the caller's to close). Bytes, 0 when the other side has closed, -EAGAIN if nothing waits,
// -EMSGSIZE for a packet longer than `bytes` (it is dropped, its descriptors closed), or -errno.
ssize_t receive_packet(int fd, void* data, std::size_t bytes, int* fds,
                       unsigned* fd_count) noexcept;

// Sleeps until fd can be read or has been closed by the other side. 1, 0 after timeout_ms (-1:
// never), or -errno.
int wait_readable(int fd, int timeout_ms) noexcept;
// Makes both sides read "closed"; the descriptor itself stays.
void shut_socket(int fd) noexcept;
// Makes the other side read "closed"; what it still sends can be read.
void shut_sending(int fd) noexcept;

}  // namespace haul::os
