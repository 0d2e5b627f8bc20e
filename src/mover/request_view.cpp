#include "mover/request_view.hpp"

#include "engine/registry.hpp"
#include "engine/spaces.hpp"
#include "execution/channel.hpp"
#include "gate/gate.hpp"
#include "mover/access.hpp"
#include "request/rights.hpp"
#include "request/sharing.hpp"

namespace haul {
namespace {

bool any_overlap(const Request& request) noexcept {
  if (request.operation != Operation::copy) return false;
  if (!same_memory(request.dst_space, request.src_space)) return false;
  SegmentWalk walk(request);
  Segment segment;
  for (std::size_t length = 0; walk.next(&segment, &length);) {
    if (overlaps(segment.dst, segment.src, length)) return true;
  }
  return false;
}

bool is_registered(const Request& request, const Engine& engine, RegionCache& regions) noexcept {
  return !request.vector() && regions.holds(request.dst->address, request.length) &&
         (request.operation == Operation::fill || !engine.registers_sources() ||
          regions.holds(request.src->address, request.length));
}

void view_engines(const Request& request, plan::Inputs* inputs) noexcept {
  inputs->engine_count = engine_count();
  for (std::size_t i = 0; i < inputs->engine_count; ++i) {
    Engine& engine = engine_at(i);
    plan::EngineView& view = inputs->engines[i];
    view = engine_view(i);
    if (!view.available && (inputs->settings.engine == static_cast<int>(i) || engine.wanted()))
      engine.begin_to_open();
    view.reaches = engine.reaches(request.operation, request.dst_space, request.src_space);
    // (A device with memory of its own is no matter of figures.)
    if (!view.device || !view.available || engine.has_memory()) continue;
    view.queued_bytes = queued_bytes(i);
    view.cached = !engine.registers() || is_registered(request, engine, regions_of(i));
  }
}

bool in_arena(const Extent* extents, std::uint32_t count) noexcept {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!gate.maps(extents[i].address, extents[i].length)) return false;
  }
  return true;
}

// How the node's service would get at the request's memory. The answer is none, too, where the
// service does not do the request: sides that overlap (a copy that a dying service leaves half done
// could not be repeated), checked requests within this process (the service does not know what this
// process has unmapped), and notifications outside the arena (a store through the kernel is not
// atomic).
plan::ServiceReach service_reach(const Request& request, const plan::RequestFacts& facts) noexcept {
  if (gate.service_bell.load(std::memory_order_relaxed) == nullptr || facts.overlapping ||
      (request.checked && !facts.granted) ||
      (request.notify != nullptr &&
       !gate.maps(reinterpret_cast<std::uintptr_t>(request.notify), 8))) {
    return plan::ServiceReach::none;
  }
  const bool copy = request.operation == Operation::copy;
  const auto side = [](Space space, const Extent* extents, std::uint32_t count) {
    if (is_grant(space) || (space == self_space && in_arena(extents, count)))
      return plan::ServiceReach::mapped;
    return space == self_space && service_reaches_memory() ? plan::ServiceReach::kernel
                                                           : plan::ServiceReach::none;
  };
  const plan::ServiceReach dst = side(request.dst_space, request.dst, request.dst_count);
  const plan::ServiceReach src =
      copy ? side(request.src_space, request.src, request.src_count) : plan::ServiceReach::mapped;
  if (dst == plan::ServiceReach::none || src == plan::ServiceReach::none)
    return plan::ServiceReach::none;
  return dst == plan::ServiceReach::kernel ? dst : src;
}

// The memory is looked at only where the plan depends on it, and where this thread may read it.
plan::Access access_of(const Request& request, const plan::Inputs& inputs) noexcept {
  const bool may_look = request.src_space == self_space && request.dst_space == self_space &&
                        !request.checked && request.dst->length != 0;
  if (!may_look || !plan::depends_on_access(inputs)) return plan::Access::cached;
  if (request.operation == Operation::fill)
    return access_of_fill(request.dst->address, request.dst->length);
  if (request.src->length == 0) return plan::Access::cached;
  return access_of_copy(request.dst->address, request.dst->length, request.src->address,
                        request.src->length);
}

// Must the calling thread copy itself, because the movers' rights differ from its own? As long as
// there is no mover, no: it will inherit the rights of the thread that makes it.
bool has_other_rights(const Request& request) noexcept {
  if (keyed_apart()) return true;
  return names_peer(request) && mover_rights() != nobodys && !may_act_for(mover_rights());
}

}  // namespace

bool names_peer(const Request& request) noexcept {
  const auto peer = [](Space space) {
    return space != self_space && !is_grant(space) && !device_memory(space);
  };
  return peer(request.dst_space) ||
         (request.operation == Operation::copy && peer(request.src_space));
}

bool names_device_memory(const Request& request) noexcept {
  return device_memory(request.dst_space) || device_memory(request.src_space);
}

void view_request(const Request& request, Ring* ring, std::uint64_t burst_bytes,
                  plan::Inputs* inputs) noexcept {
  fill_inputs(inputs);
  view_engines(request, inputs);
  plan::RequestFacts& facts = inputs->request;
  facts.operation = request.operation;
  facts.dst_affinity = request.dst_affinity;
  facts.src_affinity = request.src_affinity;
  facts.length = request.length;
  facts.self_only = request.dst_space == self_space && request.src_space == self_space;
  facts.overlapping = any_overlap(request);
  facts.burst_bytes = burst_bytes;
  facts.checked = request.checked;
  facts.granted = is_grant(request.dst_space) || is_grant(request.src_space);
  facts.device_memory = names_device_memory(request);
  facts.service_reach = service_reach(request, facts);
  // Only a quiet ring can move to the table that the service sees, and only if it has a place
  // there; until it has moved, the service cannot take the request.
  if (!facts.granted && ring != nullptr && !thread_slot.shared &&
      (ring->index >= max_shared_rings || !ring->quiet()))
    facts.service_reach = plan::ServiceReach::none;
  facts.fenced_behind = request.fence && ring != nullptr && !ring->quiet();
  facts.force_inline = request.force_inline;
  facts.notifies = request.notify != nullptr;
  facts.other_rights = has_other_rights(request);
  facts.force_dedicated = request.force_dedicated;
  facts.access = access_of(request, *inputs);
}

}  // namespace haul
