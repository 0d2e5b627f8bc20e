// The first copies on a device that a plug-in has just opened: are their bytes right, and how long
// do they take?
#pragma once

#include "engine/plugin.hpp"
#include "plan/devices.hpp"

namespace haul {

struct TryOut {
  const char* refusal = nullptr;  // why the device is not to be used; nullptr: it may be
  plan::DeviceFacts facts;
};

// Copies some 2 MiB in all on a device that nobody else uses yet, and registers memory where it
// must. Takes milliseconds, or seconds with a device that does not finish. A device that was
// refused and cannot be stopped keeps the memory that was mapped for this.
TryOut try_out(const DeviceTable& table) noexcept;

}  // namespace haul
