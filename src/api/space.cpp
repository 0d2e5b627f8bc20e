// Spaces: of other processes, and of devices whose memory is their own.
#include "api/convert.hpp"
#include "api/startup.hpp"
#include "client/grants.hpp"
#include "engine/device_spaces.hpp"
#include "engine/spaces.hpp"
#include "gate/gate.hpp"
#include "mover/submit.hpp"

namespace haul::api {

extern "C" HAUL_API int haul_space_open(int pid, haul_space* space) {
  if (space == nullptr)
    return fail(make_error(Code::invalid, 0, "space is NULL; pass a variable for the handle."));
  auto opened = open_space(pid);
  if (!opened) return fail(opened.error());
  *space = *opened;
  return 0;
}

extern "C" HAUL_API int haul_space_open_device(const char* device, haul_space* space) {
  if (device == nullptr || space == nullptr)
    return fail(
        make_error(Code::invalid, 0, "%s is NULL; pass %s.", device == nullptr ? "device" : "space",
                   device == nullptr ? "a name such as \"cuda\"" : "a variable for the handle"));
  if (gate.closed.load(std::memory_order_relaxed)) {
    return fail(make_error(Code::closed, 0,
                           "haul_shutdown() was called; open the device's memory before it."));
  }
  start_up();
  Error error;
  // The ring first: making it registers the fork handler that a device needs.
  if (ring_for_submit(&error) == nullptr) return fail(error);
  auto opened = open_device_space(device);
  if (!opened) return fail(opened.error());
  *space = *opened;
  return 0;
}

extern "C" HAUL_API int haul_space_close(haul_space space) {
  const bool grant = is_grant(space);
  const Code code = space == self_space ? Code::invalid : close_space(space);
  if (code == Code::ok && grant) forget_grant(space);
  if (code == Code::ok) return 0;
  return fail(make_error(
      Code::invalid, 0,
      "Space %u is not open (0 is this process and cannot be closed); close each space once.",
      space));
}

}  // namespace haul::api
