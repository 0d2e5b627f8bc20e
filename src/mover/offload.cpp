#include "mover/offload.hpp"

#include "engine/registry.hpp"
#include "execution/channel.hpp"
#include "execution/drive.hpp"
#include "gate/gate.hpp"
#include "mover/cores/survey.hpp"
#include "mover/mover.hpp"
#include "mover/request_view.hpp"
#include "mover/short_road.hpp"
#include "mover/submit.hpp"
#include "request/rights.hpp"

namespace haul {
namespace {

// The part that the CPU copies, and the largest that a device gets at once.
constexpr std::size_t first_bytes = std::size_t{64} << 10, most_bytes = std::size_t{1} << 20;

// Do two CPUs share a last-level cache? Unknown ones do.
bool share_cache(int a, int b) noexcept {
  const Topology* const topology = surveyed();
  if (topology == nullptr) return true;
  const CpuInfo* found[2] = {};
  for (unsigned i = 0; i < topology->allowed_count; ++i) {
    const CpuInfo& info = topology->allowed[i];
    if (info.cpu == a) found[0] = &info;
    if (info.cpu == b) found[1] = &info;
  }
  return found[0] == nullptr || found[1] == nullptr || found[0]->l3_group == found[1]->l3_group;
}

// The engine that takes the request, driven by its caller; -1: none.
int device_for(const plan::Inputs& inputs) noexcept {
  const int set = inputs.settings.engine;
  if (set < 0) return plan::choose_device(inputs, plan::Mover::caller, nullptr);
  const plan::EngineView& engine = inputs.engines[set];
  const bool takes = engine.available && engine.reaches && !engine.synchronous;
  return takes && !inputs.request.overlapping ? set : -1;
}

}  // namespace

bool offload(std::uintptr_t dst, std::uintptr_t src, std::size_t length, int source_cpu,
             Ticket* ticket) noexcept {
  constexpr std::uint8_t any = Gate::by_device | Gate::by_plan;
  if ((gate.special.load(std::memory_order_relaxed) & any) == 0 || length < 2 * first_bytes ||
      gate.closed.load(std::memory_order_relaxed))
    return false;
  const Extent to{self_space, dst, length}, from{self_space, src, length};
  Request request;
  request.dst = &to;
  request.src = &from;
  request.length = length;
  Ring* ring = nullptr;
  if (const BusyThread looking; looking) {
    Error ignored;
    ring = ring_for_submit(&ignored);
  }
  if (ring == nullptr) return false;
  plan::Inputs inputs;
  view_request(request, ring, 0, &inputs);  // reads the program's memory
  BusyThread busy;
  if (!busy || inputs.held || !ring->has_room()) return false;
  if (inputs.request.access != plan::Access::new_pages)
    inputs.request.access =
        share_cache(source_cpu, os::current_cpu()) ? plan::Access::cached : plan::Access::in_memory;
  const int device = inputs.request.other_rights ? -1 : device_for(inputs);
  if (device < 0) return false;
  Job job;
  job.engine = static_cast<std::uint8_t>(device);
  job.dst = dst;
  job.src_or_pattern = src;
  job.chunks =
      Chunks::cut(length, most_bytes, first_bytes, gate.block_log2.load(std::memory_order_relaxed));
  if (!publish(*ring, job, nullptr, ticket, true)) return false;
  busy.end();
  begin_driven(*ring, job);
  return true;
}

std::uint64_t left_of(Ticket ticket) noexcept {
  if (ticket.cookie() != ring_table.cookie() || ticket.cookie() == 0) return 0;
  Ring& ring = ring_table.ring(ticket.ring());
  Job job;
  if (ring.ended(ticket.tenancy) || !ring.read(ticket.tenancy, &job) || !is_driven(job)) return 0;
  return channel_of(ring, job).left_ns();
}

}  // namespace haul
