// What the results of the CUDA driver mean.
#pragma once

#include <cstddef>

#include "base/error.hpp"
#include "devices/cuda/driver.hpp"

namespace haul::cuda {

// "WHAT (CUDA_ERROR_...): cause; remedy".
void describe_result(Result result, const char* what, char* sentence, std::size_t sentence_bytes);

// Of a copy that was refused when it was asked for: the failure is the piece's own (fault: the
// range is not memory that the driver knows; no_memory: it is short of something now). ok: it is
// not, so the GPU or its context is gone.
Code failure_of_piece(Result result);

}  // namespace haul::cuda
