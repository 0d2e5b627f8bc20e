// A ring's figures as lines of the calibration's file.
#pragma once

#include "base/private.hpp"
#include "tune/figures_text.hpp"

namespace haul::tune {

// `prefix` ("near", "far") begins each key.
void write_ring(FiguresWriter& writer, const char* prefix, const HaulPrivateRing& ring) noexcept;

// False if the text is not what write_ring() writes, or a figure is out of its bounds.
bool read_ring(FiguresReader& reader, const char* prefix, HaulPrivateRing& ring) noexcept;

}  // namespace haul::tune
