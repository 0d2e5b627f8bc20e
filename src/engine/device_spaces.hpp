// Devices whose memory is a space of its own, by name.
#pragma once

#include "base/error.hpp"
#include "base/extent.hpp"

namespace haul {

// Opens the memory of a device, "ENGINE" or "ENGINE:WHICH" (see haul_space_open_device), and the
// engine itself, where it is not open yet. Blocks while a driver starts. invalid: no such engine;
// not_supported: it cannot be opened here, or has no memory of its own, with the sentence that says
// why.
Expected<Space> open_device_space(const char* device) noexcept;

}  // namespace haul
