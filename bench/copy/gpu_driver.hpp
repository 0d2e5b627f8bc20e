// The CUDA driver's own copies, as a program without haul makes them; by functions that are looked
// up at run time.
#pragma once

#include <cstddef>
#include <string>

namespace haul::bench {

// The first GPU, with its primary context current on the calling thread, memory there, and a
// stream. For one thread.
class GpuDriver {
 public:
  // "" if the driver and a GPU are here, else what is missing.
  static std::string why_not();

  explicit GpuDriver(std::size_t bytes);
  ~GpuDriver();
  GpuDriver(const GpuDriver&) = delete;
  GpuDriver& operator=(const GpuDriver&) = delete;

  std::string name() const;
  void* memory() const;  // of the GPU: no CPU may touch it
  void pin(void* host, std::size_t bytes);
  void unpin(void* host);
  // cuMemcpyHtoDAsync() or cuMemcpyDtoHAsync() between the GPU's memory and `host`.
  void begin_copy(bool to_gpu, void* host, std::size_t bytes);
  bool is_over();

 private:
  void* context_ = nullptr;
  void* stream_ = nullptr;
  unsigned long long memory_ = 0;
};

}  // namespace haul::bench
