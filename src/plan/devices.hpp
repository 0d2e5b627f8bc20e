// When a device moves a request's bytes: what its facts say against what the CPU's figures say.
//
// A device pays (papers 000, III-B, and 001, III-A: offload from a threshold on) where the caller
// gains time by leaving the bytes to it, and a caller that waits at once loses little; and it is
// taken before a dedicated core where it ends no later, since it leaves that core to others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::plan {

struct Inputs;
struct Reasons;
enum class Mover : std::uint8_t;

// What an engine that is a device tells of itself. The figures are measured when it is opened.
struct DeviceFacts {
  bool emulated = false;    // it is no hardware, so it is taken only where a setting asks for it
  double startup_ns = 0;    // from the submit of a short piece to its end
  double bytes_per_ns = 0;  // 0: it was not measured, or is no device
  double pin_page_ns = 0;   // what registering a page takes; 0: it moves memory as it is
};

// The device that the planner takes for inputs.request, where `mover` drives it; -1: none. The
// setting HAUL_PLAN_ENGINE has been looked at before.
int choose_device(const Inputs& inputs, Mover mover, Reasons* reasons) noexcept;

// The shortest copy within this process for which some device could be taken, if it had nothing to
// do and the source lay in memory; UINT64_MAX: there is none. The request is not read.
std::uint64_t device_from_bytes(const Inputs& inputs) noexcept;

}  // namespace haul::plan
