// The checkpoint's frame.
#pragma once

#include "format/chunk.hpp"
#include "format/coding/columns.hpp"

namespace bcisim {

// Blocks in the order of the checkpoint, each as its distance from the one before: cheap for long
// ascending stretches (convert/cut.hpp makes such). Throws FrameError for more than
// layout::most_blocks or a block beyond the physical addresses.
void encode_checkpoint(const Checkpoint& checkpoint, Compressor& compressor, Bytes& payload);
Checkpoint decode_checkpoint(ByteReader payload);

}  // namespace bcisim
