#include "device/cuda_model/world.hpp"

#include <unistd.h>

#include <cstring>

namespace haul_model {

namespace {
// The calling thread's contexts. It needs no destructor: haul still calls when exit() has run those
// of the thread.
struct ContextStack {
  ModelContext* contexts[16];
  unsigned count;
  bool empty() const { return count == 0; }
  ModelContext* back() const { return contexts[count - 1]; }
  bool push_back(ModelContext* context) {
    if (count == std::size(contexts)) return false;
    contexts[count++] = context;
    return true;
  }
  void pop_back() { --count; }
};
thread_local ContextStack stack;
}  // namespace

ModelWorld& world() {
  static auto& only = *new ModelWorld;
  return only;
}

ModelRange* ModelWorld::find(std::uintptr_t at, std::size_t bytes) {
  for (ModelRange& range : ranges)
    if (range.holds(at, bytes)) return &range;
  return nullptr;
}

int enter(const char* call) {
  ModelWorld& all = world();
  if (all.pid != 0 && all.pid != getpid()) {
    ++all.control.in_child;
    return not_initialized;
  }
  if (all.pid == 0 && std::strcmp(call, "cuInit") != 0) return not_initialized;
  if (all.control.lost) return unknown;
  const char* const failing = all.control.failing;
  if (failing != nullptr && std::strcmp(call, failing) == 0 &&
      all.control.skipped.fetch_sub(1) <= 0) {
    ++all.control.failures;
    if (all.control.sticky) all.broken = true;
    return all.control.result;
  }
  return all.broken ? all.control.result.load() : ok;
}

int enter(const char* call, ModelContext** current) {
  if (const int result = enter(call); result != ok) return result;
  if (stack.empty()) {
    ++world().control.mistakes;
    return invalid_context;
  }
  *current = stack.back();
  return (*current)->alive ? ok : context_is_destroyed;
}

}  // namespace haul_model

using namespace haul_model;

#define MODEL_API extern "C" [[gnu::visibility("default")]]

MODEL_API CudaControl* haul_cuda_model() {
  return &world().control;
}

MODEL_API int cuInit(unsigned) {
  if (const int result = enter("cuInit"); result != ok) return result;
  ModelWorld& all = world();
  all.pid = getpid();
  if (const char* const devices = std::getenv("CUDA_MODEL_DEVICES"); devices != nullptr)
    all.control.devices = std::atoi(devices);
  return all.control.devices == 0 ? no_device : ok;
}

MODEL_API int cuDriverGetVersion(int* version) {
  *version = 12040;
  return enter("cuDriverGetVersion");
}

MODEL_API int cuDeviceGetCount(int* count) {
  *count = world().control.devices;
  return enter("cuDeviceGetCount");
}

MODEL_API int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  if (const int result = enter("cuDeviceGet"); result != ok) return result;
  return ordinal >= 0 && ordinal < world().control.devices ? ok : invalid_device;
}

MODEL_API int cuDeviceGetName(char* name, int bytes, int device) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "model GPU %d", device);
  return enter("cuDeviceGetName");
}

MODEL_API int cuDevicePrimaryCtxRetain(ModelContext** context, int device) {
  if (const int result = enter("cuDevicePrimaryCtxRetain"); result != ok) return result;
  ModelWorld& all = world();
  const std::lock_guard<std::mutex> locked(all.lock);
  ++all.control.contexts;
  for (ModelContext& one : all.contexts) {
    if (one.device != device || !one.alive) continue;
    *context = &one;
    return ok;
  }
  *context = &all.contexts.emplace_back(ModelContext{device});
  return ok;
}

MODEL_API int cuDevicePrimaryCtxRelease_v2(int) {
  if (const int result = enter("cuDevicePrimaryCtxRelease"); result != ok) return result;
  --world().control.contexts;
  return ok;
}

MODEL_API int cuDevicePrimaryCtxReset_v2(int device) {
  if (const int result = enter("cuDevicePrimaryCtxReset"); result != ok) return result;
  const std::lock_guard<std::mutex> locked(world().lock);
  for (ModelContext& one : world().contexts)
    if (one.device == device) one.alive = false;
  return ok;
}

MODEL_API int cuCtxPushCurrent_v2(ModelContext* context) {
  if (const int result = enter("cuCtxPushCurrent"); result != ok) return result;
  if (!context->alive) return context_is_destroyed;
  if (stack.push_back(context)) return ok;
  ++world().control.mistakes;
  return out_of_memory;
}

MODEL_API int cuCtxPopCurrent_v2(ModelContext** context) {
  if (stack.empty()) {
    ++world().control.mistakes;
    return invalid_context;
  }
  *context = stack.back();
  stack.pop_back();
  return enter("cuCtxPopCurrent");
}

MODEL_API int cuCtxGetCurrent(ModelContext** context) {
  *context = stack.empty() ? nullptr : stack.back();
  return ok;
}
