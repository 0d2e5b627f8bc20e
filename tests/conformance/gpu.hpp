// A GPU's memory for engines that move nothing else: what a piece of the suite does within this
// process goes there and comes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/engine.hpp"

namespace haul::conformance {

// The knob that names the model of the CUDA driver.
std::string gpu_knob();
// Opens the GPU, once. False, and why not.
bool open_gpu(std::string& why);

// Memory of the GPU, holding a copy of `bytes` bytes of this process's.
class GpuTwin {
 public:
  GpuTwin(const void* from, std::size_t bytes);
  ~GpuTwin();
  GpuTwin(const GpuTwin&) = delete;
  GpuTwin& operator=(const GpuTwin&) = delete;

  Space space() const;
  std::uintptr_t address() const { return address_; }

 private:
  std::uintptr_t address_;
};

// Makes the copies that the engine asks the CPU for.
void stage(Engine& engine);

}  // namespace haul::conformance
