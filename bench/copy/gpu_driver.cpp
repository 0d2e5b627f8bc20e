#include "bench/copy/gpu_driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "tools/failure.hpp"

namespace haul::bench {
namespace {

constexpr int gpu_success = 0, gpu_not_ready = 600;

struct GpuCalls {
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*stream)(void**, unsigned) = nullptr;
  int (*event)(void**, unsigned) = nullptr;
  int (*record)(void*, void*) = nullptr;
  int (*query)(void*) = nullptr;
  int (*alloc)(unsigned long long*, std::size_t) = nullptr;
  int (*free)(unsigned long long) = nullptr;
  int (*pin)(void*, std::size_t, unsigned) = nullptr;
  int (*unpin)(void*) = nullptr;
  int (*in)(unsigned long long, const void*, std::size_t, void*) = nullptr;
  int (*out)(void*, unsigned long long, std::size_t, void*) = nullptr;
  std::string missing;
};

// As HAUL_ENGINE_CUDA has it, or the usual one.
std::string library_name() {
  const char* const setting = std::getenv("HAUL_ENGINE_CUDA");
  const std::string_view text = setting != nullptr ? setting : "";
  constexpr std::string_view word = "library=";
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return "libcuda.so.1";
  const std::string_view rest = text.substr(at + word.size());
  return std::string(rest.substr(0, rest.find(' ')));
}

const GpuCalls& calls() {
  static const GpuCalls all = [] {
    GpuCalls found;
    const std::string library = library_name();
    void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      found.missing = library + ", the CUDA driver's library, is not here; install NVIDIA's driver";
      return found;
    }
    const auto find = [&](const char* name, auto& place) {
      void* const symbol = dlsym(opened, name);
      if (symbol == nullptr) found.missing = fmt::format("{} lacks {}", library, name);
      place = reinterpret_cast<std::remove_reference_t<decltype(place)>>(symbol);
    };
    find("cuInit", found.init);
    find("cuDeviceGetCount", found.count);
    find("cuDeviceGetName", found.name);
    find("cuDevicePrimaryCtxRetain", found.retain);
    find("cuCtxPushCurrent_v2", found.push);
    find("cuCtxPopCurrent_v2", found.pop);
    find("cuStreamCreate", found.stream);
    find("cuEventCreate", found.event);
    find("cuEventRecord", found.record);
    find("cuEventQuery", found.query);
    find("cuMemAlloc_v2", found.alloc);
    find("cuMemFree_v2", found.free);
    find("cuMemHostRegister_v2", found.pin);
    find("cuMemHostUnregister", found.unpin);
    find("cuMemcpyHtoDAsync_v2", found.in);
    find("cuMemcpyDtoHAsync_v2", found.out);
    int count = 0;
    if (found.missing.empty() &&
        (found.init(0) != gpu_success || found.count(&count) != gpu_success || count == 0))
      found.missing = "the CUDA driver finds no GPU; see nvidia-smi and CUDA_VISIBLE_DEVICES";
    return found;
  }();
  return all;
}

void must(int result, const char* what) {
  if (result != gpu_success)
    throw tools::CommandFailure(fmt::format("{}: result {} of the CUDA driver", what, result));
}

}  // namespace

std::string GpuDriver::why_not() {
  return calls().missing;
}

GpuDriver::GpuDriver(std::size_t bytes) {
  if (!calls().missing.empty()) throw tools::CommandFailure(calls().missing);
  must(calls().retain(&context_, 0), "cuDevicePrimaryCtxRetain()");
  must(calls().push(context_), "cuCtxPushCurrent()");
  constexpr unsigned non_blocking = 1;
  must(calls().stream(&stream_, non_blocking), "cuStreamCreate()");
  must(calls().alloc(&memory_, bytes), "cuMemAlloc()");
}

GpuDriver::~GpuDriver() {
  calls().free(memory_);
  void* popped = nullptr;
  calls().pop(&popped);
}

std::string GpuDriver::name() const {
  char text[64] = {};
  must(calls().name(text, sizeof text, 0), "cuDeviceGetName()");
  return text;
}

void* GpuDriver::memory() const {
  return reinterpret_cast<void*>(memory_);
}

void GpuDriver::pin(void* host, std::size_t bytes) {
  must(calls().pin(host, bytes, 0), "cuMemHostRegister()");
}

void GpuDriver::unpin(void* host) {
  must(calls().unpin(host), "cuMemHostUnregister()");
}

// One event for all copies of the process: they come one after the other.
static void* the_event() {
  static void* event = nullptr;
  constexpr unsigned disable_timing = 2;
  if (event == nullptr) must(calls().event(&event, disable_timing), "cuEventCreate()");
  return event;
}

void GpuDriver::begin_copy(bool to_gpu, void* host, std::size_t bytes) {
  must(to_gpu ? calls().in(memory_, host, bytes, stream_)
              : calls().out(host, memory_, bytes, stream_),
       "a copy by the CUDA driver");
  must(calls().record(the_event(), stream_), "cuEventRecord()");
}

bool GpuDriver::is_over() {
  const int result = calls().query(the_event());
  if (result != gpu_not_ready) must(result, "cuEventQuery()");
  return result == gpu_success;
}

}  // namespace haul::bench
