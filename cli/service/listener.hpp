// The socket at which `haul serve` listens: inherited from systemd, or a place for a new one.
#pragma once

#include <string>

namespace haul::cli {

// The listening socket that systemd (or systemd-socket-activate) has passed to this process
// (sd_listen_fds(3)), or -1 if it has passed none. Throws tools::CommandFailure if it has passed
// something else. Once a process: the variables that say so are gone afterwards.
int inherited_listener();
// Where a listening socket is bound.
std::string path_of_listener(int fd);

// A full path that can be listened at, its directory made if need be: `asked` (--socket), or if
// that is "" HAUL_SERVICE_SOCKET, or the best of the usual places. Throws tools::CommandFailure.
std::string place_to_listen(const std::string& asked);

}  // namespace haul::cli
