// The planner: a pure function from (request, engines, topology, load, calibration) to who moves
// the bytes, how they are cut, and why. Plain data in, plain data out; no system call, no clock, no
// allocation.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/affinity.hpp"
#include "base/chunks.hpp"
#include "base/extent.hpp"
#include "plan/calibration.hpp"
#include "plan/devices.hpp"
#include "plan/route.hpp"

namespace haul::plan {

const char* name_of(Mover mover) noexcept;

enum class MoverState : std::uint32_t {
  none = 0,  // no thread yet: it is made when a plan needs it
  awake = 1,
  asleep = 2,
  denied = 3,      // another process leases the core
  impossible = 4,  // one CPU, or no thread can be made
};

// How the node's service reaches a request's memory.
enum class ServiceReach : std::uint8_t {
  none,    // not at all, or it cannot do what the request asks
  mapped,  // it has all of it mapped
  kernel,  // some of it by process_vm_readv and process_vm_writev only
};

// The node's service, as this process knows it.
struct ServiceFacts {
  bool attached = false;
  bool asleep = false;
  bool reaches_memory = false;  // this process's private memory too, through the kernel
  double round_trip_ns = 0;     // to its core; 0: not known
};

struct RequestFacts {
  Operation operation = Operation::copy;
  Affinity dst_affinity = Affinity::cacheable;
  Affinity src_affinity = Affinity::cacheable;
  std::size_t length = 0;
  bool self_only = true;     // both sides in this process
  bool overlapping = false;  // a side overlaps the other: one directional chunk
  bool checked = false;
  // The bytes of this request and of what the thread submitted since it last looked at a ticket, as
  // counted_bytes().
  std::uint64_t burst_bytes = 0;
  Access access = Access::cached;
  bool fenced_behind = false;  // a fence, and earlier requests are pending
  bool force_inline = false, force_dedicated = false;
  bool notifies = false;  // whoever waits for its word does not look at its ticket
  // The asking thread's rights are not the movers': it reaches a peer that they do not, or the
  // other way round, or has opened other protection keys.
  bool other_rights = false;
  ServiceReach service_reach = ServiceReach::none;
  // It names memory that another process has granted, which only the service reaches.
  bool granted = false;
  // It names memory of a device's own, which only the device's engine reaches.
  bool device_memory = false;
};

// What the planner is told of one engine.
struct EngineView {
  const char* name = "";
  bool available = false;
  bool reaches = false;  // this request's spaces and operation
  bool checked = false;
  bool synchronous = true;
  bool device = false;
  DeviceFacts facts{};
  std::uint64_t queued_bytes = 0;  // that it has accepted and not moved yet
  bool cached = false;             // this request's memory is registered, or need not be
};
inline constexpr std::size_t max_engine_views = 12;

// The user's settings (knobs); the defaults leave the decision to the planner.
struct Settings {
  bool mover_caller = false, mover_thread = false, mover_service = false;  // HAUL_PLAN_MOVER
  bool service_off = false;                                                // HAUL_SERVICE_USE=off
  int engine = -1;                          // HAUL_PLAN_ENGINE: index, -1 auto
  std::uint64_t inline_bytes = UINT64_MAX;  // HAUL_PLAN_INLINE_BYTES, UINT64_MAX auto
  std::uint32_t block_log2 = 12;
};

// What holds for all requests at a time.
struct Circumstances {
  MoverState mover = MoverState::none;
  ServiceFacts service;
  bool held = false;                // a fork or a shutdown is under way
  double round_trip_ns = 0;         // measured when the mover started; 0: use the calibration's
  std::size_t l2_bytes = 1u << 20;  // of the caller's core: what cannot fit is not hot
  std::size_t l3_bytes = 32u << 20;
  Calibration calibration;
  Settings settings;
  // threshold_set_of() these inputs; it changes with the state of the movers only.
  ThresholdSet thresholds;
};

struct Inputs : Circumstances {
  RequestFacts request;
  bool ring_full = false;
  EngineView engines[max_engine_views];
  std::size_t engine_count = 0;
};

// How a request for a mover is cut. Smaller chunks let a waiter take its half, and larger ones cost
// less: cold, 256 KiB in chunks of 32 KiB took the mover 11.1 us, of 64 KiB 10.5, as one 10.0.
inline Chunks cut_for_mover(std::size_t length, std::size_t min_chunk,
                            std::uint32_t block_log2) noexcept {
  const std::size_t unit =
      std::clamp(std::bit_floor(length / 4), std::size_t{64} << 10, std::size_t{256} << 10);
  return Chunks::cut(length, unit, min_chunk, block_log2);
}

// How a request for a device is cut: nobody takes half of it, and each piece costs its driver a
// submit and a poll. Links to memory of a device's own are the fastest, and rest for 2.6 us between
// two pieces (an H100 at 55 bytes/ns), so there pieces are larger.
inline Chunks cut_for_device(std::size_t length, bool device_memory,
                             std::uint32_t block_log2) noexcept {
  const std::size_t unit = std::size_t{device_memory ? 4u : 1u} << 20;
  return Chunks::cut(length, unit, unit / 4, block_log2);
}

// The smallest chunk worth claiming: a claim and its report cost two round trips when two workers
// take turns, so the further apart the cores, the larger the chunk.
std::size_t min_chunk_bytes(double round_trip_ns) noexcept;

// The decision alone.
struct Plan {
  Mover mover = Mover::caller;
  int engine = -1;     // index; -1: no engine can do this
  bool waits = false;  // the caller, for an asynchronous engine, before it returns
  Chunks chunks;
};

// The reasons, for people; the decisive one first.
struct Reasons {
  static constexpr unsigned max_count = 8;
  unsigned count = 0;
  char text[max_count][192] = {};
};

// Decides; *reasons (optional) is filled in. Paper 000: caller x cpu is SCNI, thread x cpu MCNI,
// caller x device SCI, thread x device MCI.
Plan make_plan(const Inputs& inputs, Reasons* reasons) noexcept;
const char* scheme_of(const Plan& plan, const Inputs& inputs) noexcept;

// Does the plan depend on the request's Access? Only then need that be found out.
// (inputs.request.access is not read.)
bool depends_on_access(const Inputs& inputs) noexcept;

// The dedicated core that this request would go to, if to any: a thread of this process or the
// node's service; caller if there is neither.
Mover dedicated_for(const Inputs& inputs) noexcept;

}  // namespace haul::plan
