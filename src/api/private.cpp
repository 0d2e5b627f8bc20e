// The symbols for haul's other libraries.
#include "base/private.hpp"

#include "base/knobs.hpp"
#include "base/topology.hpp"
#include "memory/arena.hpp"
#include "plan/messages.hpp"
#include "tune/calibration_file.hpp"

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

extern "C" void haul_private_message_limits(HaulPrivateMessageLimits* limits) {
  haul::plan::Calibration figures;
  char path[haul::tune::path_bytes];
  if (haul::tune::default_calibration_path(path, sizeof path).code == haul::Code::ok) {
    if (const auto stored = haul::tune::load_calibration(path); stored) figures = *stored;
  }
  const auto topology = haul::read_topology("");
  const haul::plan::KernelBytes kernel =
      haul::plan::kernel_bytes(figures, topology ? topology->l2_bytes : 0);
  *limits = HaulPrivateMessageLimits{haul::plan::eager_bytes(figures), kernel.try_from, kernel.from,
                                     false};
  const std::uint64_t eager = haul::knob_number(haul::Knob::fabric_eager_bytes);
  if (eager != haul::knob_auto) limits->eager_bytes = eager;
  const std::uint64_t from = haul::knob_number(haul::Knob::fabric_kernel_bytes);
  if (from != haul::knob_auto) {
    limits->kernel_try_from_bytes = limits->kernel_from_bytes = from;
    limits->kernel_fixed = true;
  }
}
