#include "devices/cuda/results.hpp"

#include <cstdio>

namespace haul::cuda {
namespace {

struct Meaning {
  Result result;
  const char* name;
  const char* text;  // cause; remedy
};

constexpr Meaning meanings[] = {
    {1, "INVALID_VALUE", "it refuses an argument; is the memory allocated, and not freed yet?"},
    {2, "OUT_OF_MEMORY",
     "memory of the GPU, or pinned, is exhausted; free some, or raise ulimit -l"},
    {3, "NOT_INITIALIZED", "the driver was not started; restart the program"},
    {4, "DEINITIALIZED", "the driver has ended, as the process does; copy before exit"},
    {34, "STUB_LIBRARY", "this library is the toolkit's stub; install NVIDIA's driver"},
    {46, "DEVICE_UNAVAILABLE", "the GPU is taken (exclusive mode) or lost; see nvidia-smi"},
    {100, "NO_DEVICE",
     "it finds no GPU; see nvidia-smi, CUDA_VISIBLE_DEVICES, and what a container is given"},
    {101, "INVALID_DEVICE", "there is no GPU of that number; see CUDA_VISIBLE_DEVICES"},
    {102, "DEVICE_NOT_LICENSED", "the GPU has no licence; ask its administrator"},
    {201, "INVALID_CONTEXT", "the context is not valid any more; restart the program"},
    {214, "ECC_UNCORRECTABLE",
     "the GPU's memory has an error; reset the GPU (nvidia-smi -r), restart the program"},
    {220, "NVLINK_UNCORRECTABLE", "NVLink has failed; reset the GPU, restart the program"},
    {304, "OPERATING_SYSTEM", "a call of the operating system failed; see dmesg"},
    {400, "INVALID_HANDLE",
     "its stream or event is gone; do not call cudaDeviceReset() while haul copies"},
    {600, "NOT_READY", "it has not ended; wait"},
    {700, "ILLEGAL_ADDRESS",
     "a kernel or copy of the program met a wrong address; mend it, restart the program"},
    {702, "LAUNCH_TIMEOUT", "a kernel of the program ran too long; restart the program"},
    {709, "CONTEXT_IS_DESTROYED",
     "the primary context is gone; do not call cudaDeviceReset() while haul copies"},
    {712, "HOST_MEMORY_ALREADY_REGISTERED", "the memory is registered; register it once"},
    {713, "HOST_MEMORY_NOT_REGISTERED", "the memory is not registered; register it first"},
    {719, "LAUNCH_FAILED", "a kernel of the program failed; mend it, restart the program"},
    {800, "NOT_PERMITTED", "that is not permitted; see the limits of the container, or of MPS"},
    {801, "NOT_SUPPORTED", "this system or GPU cannot do that; use another"},
    {802, "SYSTEM_NOT_READY", "the system is not ready; start nvidia-fabricmanager"},
    {803, "SYSTEM_DRIVER_MISMATCH",
     "library and kernel module are of different versions; reboot, or reload the module"},
    {804, "COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "this compatibility library does not know the GPU; take it off the library path"},
    {805, "MPS_CONNECTION_FAILED", "the MPS server is not reached; start it, or do without MPS"},
    {910, "STREAM_DETACHED", "its stream is gone; restart the program"},
    {999, "UNKNOWN", "an unknown error, as of a GPU that fell off the bus; see dmesg for Xid"},
};

}  // namespace

void describe_result(Result result, const char* what, char* sentence, std::size_t sentence_bytes) {
  for (const Meaning& one : meanings) {
    if (one.result != result) continue;
    std::snprintf(sentence, sentence_bytes, "%s (CUDA_ERROR_%s): %s", what, one.name, one.text);
    return;
  }
  std::snprintf(sentence, sentence_bytes,
                "%s: result %d of the CUDA driver, which haul does not know; see its documentation",
                what, result);
}

Code failure_of_piece(Result result) {
  switch (result) {
    case invalid_value: return Code::fault;
    case out_of_memory: return Code::no_memory;
    case not_permitted:
    case not_supported: return Code::not_supported;
    default: return Code::ok;
  }
}

}  // namespace haul::cuda
