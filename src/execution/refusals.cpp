#include "execution/refusals.hpp"

#include "engine/registry.hpp"
#include "engine/spaces.hpp"
#include "request/rings.hpp"
#include "request/sharing.hpp"

namespace haul {

Error no_grant_now(const plan::Inputs& inputs, HandOver result) noexcept {
  if (!inputs.service.attached) {
    return make_error(Code::again, 0,
                      "Only the node's service reaches granted memory, and this process is not "
                      "attached to one now; start `haul serve`, or try again.");
  }
  if (inputs.request.service_reach == plan::ServiceReach::none) {
    return make_error(
        Code::not_supported, 0,
        "The node's service cannot do this: the sides overlap, or it does not reach the "
        "other side or the notification word; take them from haul_alloc().");
  }
  if (const Ring* ring = own_ring(); ring != nullptr && ring->index >= max_shared_rings) {
    return make_error(Code::again, 0,
                      "The node's service reaches the requests of %u threads of a process at a "
                      "time; try again when others have ended, or in one of those.",
                      max_shared_rings);
  }
  if (result == HandOver::no_mover && !has_table_descriptor()) {
    return make_error(Code::again, 0,
                      "This thread lacks the descriptor of haul's rings, so the service does not "
                      "reach its requests: the program has closed it, or the thread has "
                      "descriptors of its own (unshare(CLONE_FILES)); copy in another thread.");
  }
  return make_error(
      Code::again, 0,
      result == HandOver::no_room
          ? "This thread's ring is full, and only the service can copy granted memory; "
            "wait for some requests first."
          : "The service cannot take this now: private requests of this thread are "
            "unfinished, or the process forks; wait for them and try again.");
}

Error no_device(const Request& request, const plan::Inputs& inputs) noexcept {
  const DeviceMemory memory =
      device_memory(device_memory(request.dst_space) ? request.dst_space : request.src_space);
  const Engine& engine = engine_at(memory.engine);
  if (!engine.available()) {
    const EngineStatus status = engine.status();
    return make_error(Code::io, 0, "The engine %s does not work any more: %s", engine.facts().name,
                      status.sentence);
  }
  const char* why = "one side is not of this process, nor of its devices' memory";
  if (request.operation == Operation::fill) why = "it is a fill";
  if (request.checked) why = "it is checked, and a device does not look at addresses";
  if (inputs.request.overlapping) why = "its sides overlap";
  return make_error(Code::not_supported, 0,
                    "The engine %s cannot do this request in its device's memory: %s; copy between "
                    "that memory and this process's.",
                    engine.facts().name, why);
}

Error no_device_now(const plan::Inputs& inputs, HandOver result) noexcept {
  if (inputs.request.other_rights) {
    return make_error(Code::not_supported, 0,
                      "This thread has opened other protection keys than haul's threads, which "
                      "copy for the device; submit from a thread that has opened theirs.");
  }
  return make_error(Code::again, 0,
                    result == HandOver::no_room
                        ? "This thread's ring is full, or a signal handler interrupted a haul call "
                          "of it, and only a device reaches this memory; wait for some requests "
                          "first."
                        : "The process forks or shuts down, and only a device reaches this memory; "
                          "try again.");
}

}  // namespace haul
