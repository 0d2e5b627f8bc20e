// Where the node's service listens: the one rule that both sides follow.
#pragma once

#include <cstddef>

namespace haul {

inline constexpr std::size_t socket_path_bytes = 108;  // sun_path

// The index-th place, best first, in *path; false past the last. HAUL_SERVICE_SOCKET names the only
// one; else $XDG_RUNTIME_DIR/haul/service.sock, /run/user/UID/haul/service.sock and
// /tmp/haul-UID/service.sock. The service takes the first whose directory it can make or use; a
// client asks them all. (A directory of another user's is passed over.)
bool service_socket_path(unsigned index, char (&path)[socket_path_bytes]) noexcept;

// The service's: makes the directory of `path` (mode 0700), one level deep. 0, or -errno; -EPERM if
// it is there and another user's, or others may write to it.
int make_socket_directory(const char* path) noexcept;

}  // namespace haul
