// Whether an endpoint can be reached from other nodes, and where.
#include <cerrno>
#include <cstring>
#include <new>

#include "base/log.hpp"
#include "base/os/os.hpp"
#include "fabric/transport/offnode/network.hpp"

namespace haul::fabric {

std::unique_ptr<OffnodeNetwork> open_offnode(const char* provider, Address* self,
                                             Error* error) noexcept {
  *error = Error{};
  if (std::strcmp(provider, "off") == 0) return nullptr;
  const bool is_auto = std::strcmp(provider, "auto") == 0;
  OffnodePlaces places;
  int count = os::local_addresses(places.addresses, OffnodePlaces::capacity, false);
  if (count == 0 && is_auto) return nullptr;
  // A user who names a provider means it, if only for endpoints in containers of one node.
  if (count == 0) count = os::local_addresses(places.addresses, OffnodePlaces::capacity, true);
  const int listener = count > 0 ? os::listen_inet(&places.port) : count < 0 ? count : -ENETDOWN;
  if (listener < 0) {
    *error = make_error(Code::io, -listener,
                        "other nodes cannot reach this endpoint, because it cannot listen on a TCP "
                        "port (%s); set HAUL_FABRIC_OFFNODE=off if none need to",
                        describe_errno(-listener));
    return nullptr;
  }
  places.count = static_cast<unsigned>(count);
  write_places(places, self);
  std::unique_ptr<OffnodeNetwork> network(new (std::nothrow)
                                              OffnodeNetwork(provider, *self, listener));
  if (!network) {
    os::close_fd(listener);
    *error = make_error(Code::no_memory, ENOMEM,
                        "there is no memory for messages to other nodes; free some, or set "
                        "HAUL_FABRIC_OFFNODE=off");
  }
  return network;
}

}  // namespace haul::fabric
