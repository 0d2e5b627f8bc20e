#include "atomic/plugin/xdp_program.hpp"

#include "atomic/plugin/plugin.hpp"

namespace haul::atomics {

XdpProgram* open_xdp(const XdpOptions& options, Error* error) noexcept {
  const auto open = reinterpret_cast<OpenXdp>(open_plugin(xdp_plugin, error));
  return open != nullptr ? open(options, error) : nullptr;
}

}  // namespace haul::atomics
