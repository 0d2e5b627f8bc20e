#include "conformance/gpu.hpp"

#include <cstring>

#include "device/cuda_model.hpp"
#include "engine/device_spaces.hpp"

namespace haul::conformance {
namespace {

haul_model::CudaModel& model() {
  static auto& only = *new haul_model::CudaModel(CUDA_MODEL_LIBRARY);
  return only;
}

Space gpu_space = self_space;

}  // namespace

std::string gpu_knob() {
  return "library=" CUDA_MODEL_LIBRARY " slots=3 slot_bytes=64K";
}

bool open_gpu(std::string& why) {
  if (gpu_space != self_space) return true;
  const Expected<Space> opened = open_device_space("cuda");
  if (opened) {
    gpu_space = *opened;
  } else {
    why = opened.error().sentence;
  }
  return gpu_space != self_space;
}

GpuTwin::GpuTwin(const void* from, std::size_t bytes)
    : address_(model().allocate(bytes != 0 ? bytes : 1)) {
  if (bytes != 0) std::memcpy(model().peek(address_), from, bytes);
}

GpuTwin::~GpuTwin() {
  model().release(address_);
}

Space GpuTwin::space() const {
  return gpu_space;
}

void stage(Engine& engine) {
  StagingCopy copy;
  while (engine.take_staging(&copy)) {
    std::memcpy(reinterpret_cast<void*>(copy.dst), reinterpret_cast<const void*>(copy.src),
                copy.bytes);
    copy.done->store(1, std::memory_order_release);
  }
}

}  // namespace haul::conformance
