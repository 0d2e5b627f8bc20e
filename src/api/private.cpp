// The symbols for haul's other libraries.
#include "base/private.hpp"

#include "api/convert.hpp"
#include "base/knobs.hpp"
#include "engine/registry.hpp"
#include "memory/arena.hpp"
#include "memory/changes.hpp"
#include "memory/foreign_regions.hpp"
#include "memory/new_pages.hpp"
#include "mover/cores/survey.hpp"
#include "mover/offload.hpp"
#include "mover/submit.hpp"
#include "plan/messages.hpp"
#include "tune/background.hpp"

extern "C" void haul_private_arena(HaulPrivateArena* arena) {
  const haul::ArenaView view = haul::arena_view();
  *arena = HaulPrivateArena{view.fd, view.base, view.bytes};
}

extern "C" bool haul_private_in_arena(const void* address, std::size_t bytes,
                                      std::uint64_t* offset) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if (!haul::arena_bounds.contains(number, bytes)) return false;
  *offset = number - haul::arena_bounds.base.load(std::memory_order_relaxed);
  return true;
}

extern "C" void haul_private_open_engines() {
  for (std::size_t i = 0; i < haul::engine_count(); ++i)
    if (!haul::engine_at(i).available()) haul::engine_at(i).begin_to_open();
}

namespace {

haul::plan::WantedRing wanted_ring() noexcept {
  using haul::Knob;
  constexpr std::uint64_t on = 1;  // of auto|on|off
  haul::plan::WantedRing wanted;
  wanted.eager_bytes = haul::knob_number(Knob::fabric_eager_bytes);
  wanted.part_bytes = haul::knob_number(Knob::fabric_part_bytes);
  wanted.cell_from_bytes = haul::knob_number(Knob::fabric_cell_bytes);
  wanted.piece_bytes = haul::knob_number(Knob::fabric_piece_bytes);
  if (const auto ahead = haul::knob_number(Knob::fabric_own_ahead); ahead != 0)
    wanted.owns_ahead = ahead == on;
  if (const auto demote = haul::knob_number(Knob::fabric_demote); demote != 0)
    wanted.demotes = demote == on;
  // (The index of the choice, of which the first is auto.)
  if (const auto in = haul::knob_number(Knob::fabric_copy_in); in != 0)
    wanted.copies_in = static_cast<HaulPrivateCopy>(in - 1);
  if (const auto out = haul::knob_number(Knob::fabric_copy_out); out != 0)
    wanted.copies_out = static_cast<HaulPrivateCopy>(out - 1);
  return wanted;
}

}  // namespace

extern "C" void haul_private_message_limits(HaulPrivateMessageLimits* limits) {
  // Where a home directory or an lxcfs does not answer, the defaults are used.
  constexpr std::uint64_t patience_ns = 1'000'000'000;
  const haul::tune::Measured stored = haul::tune::stored_or_default();
  haul::start_survey();
  haul::await_survey(patience_ns);
  const haul::Topology* topology = haul::surveyed();
  const haul::plan::KernelBytes kernel =
      haul::plan::kernel_bytes(stored.figures, topology != nullptr ? topology->l2_bytes : 0);
  *limits = HaulPrivateMessageLimits{};
  limits->kernel_try_from_bytes = kernel.try_from;
  limits->kernel_from_bytes = kernel.from;
  limits->stream_from_bytes =
      haul::plan::stream_from_bytes(topology != nullptr ? topology->l3_bytes : 0);
  const std::uint64_t stream = haul::knob_number(haul::Knob::fabric_stream_bytes);
  if (stream != haul::knob_auto) {
    limits->stream_from_bytes = stream;
    limits->stream_fixed = true;
  }
  const haul::plan::Rings rings =
      haul::plan::rings_by(stored.figures, {stored.near, stored.far}, wanted_ring());
  limits->near = rings.near;
  limits->far = rings.far;
  const haul::plan::RingCost ring = haul::plan::ring_cost(stored.figures, rings.near);
  limits->measured = stored.figures.measured;
  limits->ring_asking_ns = ring.asking_ns;
  limits->ring_line_ns = ring.line_ns;
  const std::uint64_t from = haul::knob_number(haul::Knob::fabric_kernel_bytes);
  if (from != haul::knob_auto) {
    limits->kernel_try_from_bytes = limits->kernel_from_bytes = from;
    limits->kernel_fixed = true;
  }
}

extern "C" int haul_private_keep_rings(const HaulPrivateRing* near, const HaulPrivateRing* far) {
  const haul::Error error = haul::tune::keep_rings(*near, *far);
  return error.code == haul::Code::ok ? HAUL_OK : haul::api::fail(error);
}

extern "C" int haul_private_cache_of(int cpu) noexcept {
  const haul::Topology* topology = haul::surveyed();
  if (topology == nullptr) return -1;
  for (unsigned i = 0; i < topology->allowed_count; ++i)
    if (topology->allowed[i].cpu == cpu) return topology->allowed[i].l3_group;
  return -1;
}

extern "C" std::size_t haul_private_make_pages(std::uintptr_t begin, std::uintptr_t end,
                                               std::uintptr_t at, std::size_t length) noexcept {
  return haul::NewPages({begin, end}, 0).make(at, length);
}

extern "C" bool haul_private_defer(const HaulPrivateDeferred* call, haul_ticket* ticket) noexcept {
  HaulPrivateDeferred wanted = *call;
  wanted.may_make_huge = wanted.may_make_huge && haul::huge_pages_wanted();
  haul::Ticket deferred;
  if (!haul::submit_deferred(wanted, &deferred)) return false;
  *ticket = haul::api::to_c(deferred);
  return true;
}

extern "C" bool haul_private_force_copy(std::uintptr_t dst, std::uintptr_t src, std::size_t length,
                                        haul_ticket* ticket) noexcept {
  haul::Ticket forced;
  if (!haul::force_copy(dst, src, length, &forced)) return false;
  *ticket = haul::api::to_c(forced);
  return true;
}

extern "C" bool haul_private_offload(void* dst, const void* src, std::size_t length,
                                     std::int32_t source_cpu, haul_ticket* ticket) noexcept {
  haul::Ticket offloaded;
  if (!haul::offload(reinterpret_cast<std::uintptr_t>(dst), reinterpret_cast<std::uintptr_t>(src),
                     length, source_cpu, &offloaded))
    return false;
  *ticket = haul::api::to_c(offloaded);
  return true;
}

extern "C" HaulPrivateRegions* haul_private_open_regions(
    const HaulPrivateRegistrar* registrar) noexcept {
  return HaulPrivateRegions::open(*registrar);
}

extern "C" bool haul_private_hold_region(HaulPrivateRegions* regions, std::uintptr_t address,
                                         std::size_t wanted, std::size_t before, std::size_t behind,
                                         HaulPrivateHold* hold) noexcept {
  return regions->hold(address, wanted, before, behind, hold);
}

extern "C" void haul_private_release_region(HaulPrivateRegions* regions,
                                            const HaulPrivateHold* hold) noexcept {
  regions->release(*hold);
}

extern "C" void haul_private_tidy_regions(HaulPrivateRegions* regions, bool all) noexcept {
  regions->tidy(all);
}

extern "C" void haul_private_close_regions(HaulPrivateRegions* regions, bool in_child) noexcept {
  if (in_child) {
    regions->abandon();
  } else {
    regions->close();
  }
}

extern "C" std::uint64_t haul_private_left_ns(const haul_ticket* ticket) noexcept {
  return haul::left_of(haul::api::from_c(*ticket));
}

extern "C" void haul_private_tell_of_change(std::uintptr_t begin, std::uintptr_t end) noexcept {
  haul::tell_of_change(begin, end);
}
