// What the model of the CUDA driver knows: GPUs, memory, contexts, and what each call must pass
// before it does anything. One lock guards all of it but the streams.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <vector>

#include "device/cuda_model.hpp"

namespace haul_model {

using Address = unsigned long long;

constexpr int ok = 0, invalid_value = 1, out_of_memory = 2, not_initialized = 3, no_device = 100,
              invalid_device = 101, invalid_context = 201, invalid_handle = 400, not_ready = 600,
              context_is_destroyed = 709, already_registered = 712, not_registered = 713,
              unknown = 999;

struct ModelContext {
  int device = 0;
  bool alive = true;
};

// A GPU's memory, or pinned memory of the process.
struct ModelRange {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  unsigned char* real = nullptr;  // of a GPU's: where it can be touched
  int device = 0;
  bool is_device = false;
  bool allocated = false;  // pinned memory of the driver's own
  bool holds(std::uintptr_t at, std::size_t count) const {
    return at >= begin && at - begin <= bytes && count <= bytes - (at - begin);
  }
};

struct ModelWorld {
  std::mutex lock;
  CudaControl control;
  std::atomic<pid_t> pid{0};  // of the process that has started it; 0: none has
  std::list<ModelContext> contexts;
  std::vector<ModelRange> ranges;
  std::size_t device_bytes[16] = {}, pinned_bytes = 0;
  std::atomic<bool> broken{false};  // after a sticky failure

  // The range that has all of [at, at + bytes), or nullptr. (Locked.)
  ModelRange* find(std::uintptr_t at, std::size_t bytes);
};

ModelWorld& world();

// What every call passes first: a result to return at once, or ok. `current`: it wants a context,
// which is then *current.
int enter(const char* call);
int enter(const char* call, ModelContext** current);

}  // namespace haul_model
