// The socket at which `haul serve` listens: inherited from systemd, or a place for a new one.
#pragma once

#include <string>

namespace haul::cli {

// The listening socket that systemd (or systemd-socket-activate) has passed to this process
// (sd_listen_fds(3)); -1 if it has passed none. Throws tools::CommandFailure if it has passed
// something else. Works once in a process: afterwards the variables that name the socket are gone.
int inherited_listener();
// The path at which a listening socket is bound.
std::string path_of_listener(int fd);

// A full path to listen at, whose directory is made if need be: `asked` (--socket); if that is "",
// HAUL_SERVICE_SOCKET; else the best of the usual places. Throws tools::CommandFailure.
std::string place_to_listen(const std::string& asked);

}  // namespace haul::cli
