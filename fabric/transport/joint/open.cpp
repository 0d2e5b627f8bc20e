// The network of an endpoint, put together.
#include "fabric/transport/joint/open.hpp"

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "fabric/transport/identity.hpp"
#include "fabric/transport/joint/joint.hpp"

namespace haul::fabric {

Expected<std::unique_ptr<EndpointNetwork>> open_network(const Address& wanted) noexcept {
  if (names_an_endpoint(wanted)) {
    Expected<std::unique_ptr<LocalNetwork>> named = LocalNetwork::open(wanted, nullptr);
    if (!named) return named.error();
    return std::unique_ptr<EndpointNetwork>(std::move(*named));
  }
  Address address;
  if (!make_address(&address)) {
    return make_error(Code::io, 0,
                      "The kernel gives no random numbers (getrandom); let the seccomp filter "
                      "allow it.");
  }
  Error none;
  std::unique_ptr<OffnodeNetwork> offnode =
      open_offnode(knob_text(Knob::fabric_offnode), &address, &none);
  if (offnode != nullptr) {
    Expected<std::unique_ptr<JointNetwork>> joint = JointNetwork::open(address, std::move(offnode));
    if (!joint) return joint.error();
    return std::unique_ptr<EndpointNetwork>(std::move(*joint));
  }
  if (none.sentence[0] != '\0')
    log(LogLevel::info, "messages: other nodes are out of reach: %s", none.sentence);
  Expected<std::unique_ptr<LocalNetwork>> local = LocalNetwork::open(address, nullptr);
  if (!local) return local.error();
  return std::unique_ptr<EndpointNetwork>(std::move(*local));
}

}  // namespace haul::fabric
