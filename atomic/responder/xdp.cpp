#include "atomic/responder/xdp.hpp"

#include "atomic/responder/plugin.hpp"

namespace haul::atomics {

Xdp* open_xdp(const XdpOptions& options, Error* error) noexcept {
  const auto open = reinterpret_cast<OpenXdp>(open_plugin(xdp_plugin, error));
  return open != nullptr ? open(options, error) : nullptr;
}

}  // namespace haul::atomics
