// A library that stands for the CUDA driver: it really does what the calls that haul makes of it
// ask for, and misbehaves where a test says so. It is no GPU, and measures nothing.
//
// A GPU's memory is a memfd that is mapped twice: readable and writable at an address that nobody
// is told, for the model's own threads, and with no rights at the address that programs get, so
// that a CPU that touches it faults, as it would with a GPU's. Each stream has a thread, which
// executes in order. A copy of memory of the process that is not registered blocks its caller until
// it is done, as with CUDA, and is counted.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace haul_model {

// Read and written by tests at any time; it lies in the library.
struct CudaControl {
  std::atomic<int> devices{1};
  std::atomic<std::size_t> memory_limit{SIZE_MAX};  // bytes that a GPU has for all
  std::atomic<std::size_t> pinned_limit{SIZE_MAX};  // and the process for pinned memory
  std::atomic<unsigned> late_us{0};                 // each copy ends so much later
  std::atomic<unsigned> page_ns{0};                 // registering a page takes so much longer
  std::atomic<bool> stuck{false};                   // nothing ends
  std::atomic<bool> lost{false};                    // it fell off the bus: every call fails
  std::atomic<bool> spoils{false};                  // a byte of each copy is wrong
  // The calls named so (without a revision; null: none) return this result, but for the first
  // `skipped`. Set `failing` last.
  std::atomic<int> result{0};
  std::atomic<int> skipped{0};
  std::atomic<const char*> failing{nullptr};
  // Once it has failed, all calls with a context fail with that, as after an error of a kernel.
  std::atomic<bool> sticky{false};

  // ---- what was asked of it ----
  std::atomic<unsigned> in{0}, out{0}, within{0}, between{0};  // copies
  std::atomic<unsigned> blocking{0};  // of these: their caller waited, as the memory was pageable
  std::atomic<unsigned> astray{0};    // copies of what is no memory of the GPU: they are refused
  std::atomic<unsigned> queries{0};
  std::atomic<unsigned> registrations{0}, registered_now{0};
  std::atomic<unsigned> contexts{0};  // retained
  std::atomic<unsigned> in_child{0};  // calls in a child of fork
  std::atomic<unsigned> mistakes{0};  // calls that no program may make: no context, a free slot
  std::atomic<unsigned> failures{0};  // results that a test asked for
};

// The driver's functions that tests call as a program would, and the way behind the GPU's back.
class CudaModel {
 public:
  explicit CudaModel(const char* library) {
    library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) {
      std::fprintf(stderr, "cuda model: %s\n", dlerror());
      std::abort();
    }
    find("haul_cuda_model", control_);
    find("haul_cuda_model_peek", peek_);
    find("cuInit", init_);
    find("cuMemAlloc_v2", alloc_);
    find("cuMemFree_v2", free_);
    find("cuDevicePrimaryCtxRetain", retain_);
    find("cuDevicePrimaryCtxReset_v2", reset_);
    find("cuCtxPushCurrent_v2", push);
    find("cuCtxPopCurrent_v2", pop);
    find("cuCtxGetCurrent", current_);
    find("cuMemHostRegister_v2", host_register);
    find("cuMemHostUnregister", host_unregister);
  }

  CudaControl& control() const { return *control_(); }

  // As cudaMalloc() would: 0 if there is none. On the GPU of that number.
  std::uintptr_t allocate(std::size_t bytes, int device = 0) {
    init_(0);
    void *context = nullptr, *popped = nullptr;
    unsigned long long at = 0;
    if (retain_(&context, device) != 0) return 0;
    push(context);
    if (alloc_(&at, bytes) != 0) at = 0;
    pop(&popped);
    return static_cast<std::uintptr_t>(at);
  }
  void release(std::uintptr_t at) { free_(at); }
  // Where a GPU's byte really lies.
  unsigned char* peek(std::uintptr_t at) const { return peek_(at); }
  void* context(int device = 0) {
    void* found = nullptr;
    init_(0);
    retain_(&found, device);
    return found;
  }
  void* current() const {
    void* found = nullptr;
    current_(&found);
    return found;
  }
  int reset(int device = 0) { return reset_(device); }

  int (*push)(void* context) = nullptr;
  int (*pop)(void** context) = nullptr;
  int (*host_register)(void* at, std::size_t bytes, unsigned flags) = nullptr;
  int (*host_unregister)(void* at) = nullptr;

 private:
  template <class Function>
  void find(const char* name, Function*& place) {
    place = reinterpret_cast<Function*>(dlsym(library_, name));
    if (place != nullptr) return;
    std::fprintf(stderr, "cuda model: %s is missing\n", name);
    std::abort();
  }

  void* library_ = nullptr;
  CudaControl* (*control_)() = nullptr;
  unsigned char* (*peek_)(std::uintptr_t at) = nullptr;
  int (*init_)(unsigned flags) = nullptr;
  int (*alloc_)(unsigned long long* at, std::size_t bytes) = nullptr;
  int (*free_)(unsigned long long at) = nullptr;
  int (*retain_)(void** context, int device) = nullptr;
  int (*reset_)(int device) = nullptr;
  int (*current_)(void** context) = nullptr;
};

}  // namespace haul_model
