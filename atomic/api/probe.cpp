// What this machine can do.
#include "atomic/api/handles.hpp"
#include "atomic/plugin/xdp_program.hpp"

extern "C" int haul_atomic_probe_xdp(void) {
  const haul::Uncancelled guard;
  haul::Error error;
  haul::atomics::XdpOptions options;  // no interface: loaded, and not attached
  haul::atomics::XdpProgram* xdp = haul::atomics::open_xdp(options, &error);
  if (xdp == nullptr) return haul::atomics::fail(error);
  xdp->close();
  return 0;
}
