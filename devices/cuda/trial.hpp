// The first copies on a GPU that was just opened, which nobody else uses yet.
#pragma once

#include <cstddef>

#include "devices/cuda/gpus.hpp"

namespace haul::cuda {

// Gives the GPU slots, as the choices say. Looks whether the bytes that come back are those that
// went, and notes the figures. False, and why the GPU is not to be used. Takes some 32 MiB of
// memory on either side meanwhile, and a few tens of milliseconds.
bool try_gpu(Gpu& gpu, const Driver& driver, const CudaChoices& choices, char* sentence,
             std::size_t sentence_bytes);

}  // namespace haul::cuda
