// The engine nic by a card of its own: the word vfio in HAUL_ENGINE_NIC.
#pragma once

#include <cstddef>

#include "devices/nic/loop.hpp"
#include "engine/plugin.hpp"

namespace haul::nic {

// Opens the card that is named among the choices, and fills in the plug-in's table. Once a process.
// False: the sentence says why not and the remedy.
bool open_card(const Choices& choices, DeviceTable* table, char* sentence,
               std::size_t bytes) noexcept;

}  // namespace haul::nic
