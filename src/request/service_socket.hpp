// Where the node's service listens: the one rule that both sides follow.
#pragma once

#include <cstddef>

namespace haul {

inline constexpr std::size_t socket_path_bytes = 108;  // sun_path

// Writes the index-th place, best first, to `path`; false past the last. HAUL_SERVICE_SOCKET names
// the only one; otherwise they are $XDG_RUNTIME_DIR/haul/service.sock,
// /run/user/UID/haul/service.sock and /tmp/haul-UID/service.sock. The service takes the first whose
// directory it can make or use; a client tries them all. (A directory of another user's is
// skipped.)
bool service_socket_path(unsigned index, char (&path)[socket_path_bytes]) noexcept;

// For the service: makes the directory of `path` (mode 0700), one level deep. 0, or -errno; -EPERM
// if it exists and is another user's, or others may write to it.
int make_socket_directory(const char* path) noexcept;

}  // namespace haul
