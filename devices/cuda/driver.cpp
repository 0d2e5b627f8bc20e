#include "devices/cuda/driver.hpp"

#include <dlfcn.h>

#include <cstdio>

#include "devices/cuda/results.hpp"

namespace haul::cuda {
namespace {

constexpr const char* usual_library = "libcuda.so.1";

// A name's number is that of its revision: _v2 takes 64-bit sizes and pointers.
struct Wanted {
  const char* name;
  void* place;
};

template <class Function>
Wanted wanted(const char* name, Function*& place) {
  return {name, static_cast<void*>(&place)};
}

// The first name that the library lacks; nullptr: it has all.
const char* find_functions(void* library, Driver& driver) {
  const Wanted all[] = {
      wanted("cuInit", driver.init),
      wanted("cuDriverGetVersion", driver.driver_version),
      wanted("cuDeviceGetCount", driver.device_count),
      wanted("cuDeviceGet", driver.device_get),
      wanted("cuDeviceGetName", driver.device_name),
      wanted("cuDevicePrimaryCtxRetain", driver.primary_retain),
      wanted("cuDevicePrimaryCtxRelease_v2", driver.primary_release),
      wanted("cuCtxPushCurrent_v2", driver.push_current),
      wanted("cuCtxPopCurrent_v2", driver.pop_current),
      wanted("cuStreamCreate", driver.stream_create),
      wanted("cuEventCreate", driver.event_create),
      wanted("cuEventRecord", driver.event_record),
      wanted("cuEventQuery", driver.event_query),
      wanted("cuMemAlloc_v2", driver.alloc),
      wanted("cuMemFree_v2", driver.free),
      wanted("cuMemHostAlloc", driver.host_alloc),
      wanted("cuMemFreeHost", driver.host_free),
      wanted("cuMemHostRegister_v2", driver.host_register),
      wanted("cuMemHostUnregister", driver.host_unregister),
      wanted("cuMemcpyHtoDAsync_v2", driver.to_device),
      wanted("cuMemcpyDtoHAsync_v2", driver.from_device),
      wanted("cuMemcpyDtoDAsync_v2", driver.within_device),
      wanted("cuMemcpyPeerAsync", driver.between_devices),
      wanted("cuPointerGetAttributes", driver.pointer_attributes),
  };
  for (const Wanted& one : all) {
    void* const found = dlsym(library, one.name);
    if (found == nullptr) return one.name;
    *static_cast<void**>(one.place) = found;
  }
  return nullptr;
}

}  // namespace

bool load_driver(const char* library, Driver& driver, char* sentence, std::size_t sentence_bytes) {
  const char* const name = library != nullptr ? library : usual_library;
  void* const opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    std::snprintf(sentence, sentence_bytes,
                  "%.90s, the CUDA driver's library, is not here; install NVIDIA's driver, or name "
                  "the library: HAUL_ENGINE_CUDA=library=PATH",
                  name);
    return false;
  }
  if (const char* const lacking = find_functions(opened, driver); lacking != nullptr) {
    std::snprintf(sentence, sentence_bytes,
                  "%.80s lacks the function %s, so it is no CUDA driver of version 11 or later; "
                  "install NVIDIA's driver",
                  name, lacking);
    return false;
  }
  driver.emulated = dlsym(opened, "haul_cuda_model") != nullptr;
  const Result result = driver.init(0);
  if (result == success) return true;
  describe_result(result, "the CUDA driver does not start", sentence, sentence_bytes);
  return false;
}

}  // namespace haul::cuda
