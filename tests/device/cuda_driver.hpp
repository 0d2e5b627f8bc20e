// The CUDA driver as a program without haul uses it: that of this machine, or another library that
// stands for it. For tests that look at a GPU's memory without haul.
#pragma once

#include <dlfcn.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>

namespace haul_model {

// The first GPU, with its primary context. For one thread at a time.
class CudaDriver {
 public:
  // Is there such a library, and a GPU? Then the others may be called.
  bool open(const char* library) {
    library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return false;
    int (*init)(unsigned) = nullptr, (*retain)(void**, int) = nullptr;
    int (*stream)(void**, unsigned) = nullptr, (*event)(void**, unsigned) = nullptr;
    if (!find("cuInit", init) || !find("cuDevicePrimaryCtxRetain", retain) ||
        !find("cuStreamCreate", stream) || !find("cuEventCreate", event) ||
        !find("cuCtxPushCurrent_v2", push_) || !find("cuMemAlloc_v2", alloc_) ||
        !find("cuMemFree_v2", free_) || !find("cuMemcpyHtoDAsync_v2", in_) ||
        !find("cuMemcpyDtoHAsync_v2", out_) || !find("cuEventRecord", record_) ||
        !find("cuEventQuery", query_) || !find("cuMemHostRegister_v2", pin_) ||
        !find("cuMemHostUnregister", unpin_))
      return false;
    void* context = nullptr;
    return init(0) == 0 && retain(&context, 0) == 0 && push_(context) == 0 &&
           stream(&stream_, 1) == 0 && event(&event_, 0) == 0;
  }

  // 0: there is none.
  std::uintptr_t allocate(std::size_t bytes) {
    unsigned long long at = 0;
    return alloc_(&at, bytes) == 0 ? static_cast<std::uintptr_t>(at) : 0;
  }
  void release(std::uintptr_t at) { free_(at); }
  bool pin(void* at, std::size_t bytes) { return pin_(at, bytes, 0) == 0; }
  bool unpin(void* at) { return unpin_(at) == 0; }
  // Copies, to the end.
  bool write(std::uintptr_t gpu, const void* from, std::size_t bytes) {
    return in_(gpu, from, bytes, stream_) == 0 && ended();
  }
  bool read(void* to, std::uintptr_t gpu, std::size_t bytes) {
    return out_(to, gpu, bytes, stream_) == 0 && ended();
  }

 private:
  template <class Function>
  bool find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    return function != nullptr;
  }
  bool ended() {
    constexpr int not_ready = 600;
    if (record_(event_, stream_) != 0) return false;
    int result = not_ready;
    while ((result = query_(event_)) == not_ready) sched_yield();
    return result == 0;
  }

  void *library_ = nullptr, *stream_ = nullptr, *event_ = nullptr;
  int (*push_)(void*) = nullptr;
  int (*alloc_)(unsigned long long*, std::size_t) = nullptr;
  int (*free_)(unsigned long long) = nullptr;
  int (*in_)(unsigned long long, const void*, std::size_t, void*) = nullptr;
  int (*out_)(void*, unsigned long long, std::size_t, void*) = nullptr;
  int (*record_)(void*, void*) = nullptr;
  int (*query_)(void*) = nullptr;
  int (*pin_)(void*, std::size_t, unsigned) = nullptr;
  int (*unpin_)(void*) = nullptr;
};

}  // namespace haul_model
