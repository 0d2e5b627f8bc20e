// The model's memory: of GPUs, and pinned.
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "device/cuda_model/streams.hpp"
#include "device/cuda_model/world.hpp"

using namespace haul_model;

#define MODEL_API extern "C" [[gnu::visibility("default")]]

namespace {

constexpr std::size_t page = 4096;

std::size_t in_pages(std::size_t bytes) {
  return (bytes + page - 1) & ~(page - 1);
}

// Is all of it mapped? (The kernel is asked, for many pages at a time, since a byte of each page
// would fault.)
bool is_mapped(std::uintptr_t begin, std::size_t bytes) {
  constexpr std::size_t most = 512;
  char read[most];
  iovec remote[most];
  for (std::uintptr_t at = begin & ~(page - 1); at < begin + bytes;) {
    std::size_t count = 0;
    for (; count < most && at < begin + bytes; at += page)
      remote[count++] = {reinterpret_cast<void*>(std::max(at, begin)), 1};
    const iovec local{read, count};
    if (process_vm_readv(getpid(), &local, 1, remote, count, 0) != static_cast<ssize_t>(count))
      return false;
  }
  return true;
}

bool overlap_in_pages(const ModelRange& range, std::uintptr_t at, std::size_t bytes) {
  const std::uintptr_t mine = at & ~(page - 1), mine_end = in_pages(at + bytes);
  return (range.begin & ~(page - 1)) < mine_end && mine < in_pages(range.begin + range.bytes);
}

}  // namespace

MODEL_API unsigned char* haul_cuda_model_peek(std::uintptr_t at) {
  const std::lock_guard<std::mutex> locked(world().lock);
  const ModelRange* const range = world().find(at, 1);
  return range != nullptr && range->is_device ? range->real + (at - range->begin) : nullptr;
}

MODEL_API int cuMemAlloc_v2(Address* at, std::size_t bytes) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuMemAlloc", &current); result != ok) return result;
  ModelWorld& all = world();
  const std::lock_guard<std::mutex> locked(all.lock);
  if (bytes == 0) return invalid_value;
  std::size_t& used = all.device_bytes[current->device];
  if (bytes > all.control.memory_limit || used > all.control.memory_limit - bytes)
    return out_of_memory;
  const int file = memfd_create("cuda-model", MFD_CLOEXEC);
  const std::size_t mapped = in_pages(bytes);
  if (file < 0 || ftruncate(file, static_cast<off_t>(mapped)) != 0) return out_of_memory;
  void* const real = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  void* const shown = mmap(nullptr, mapped, PROT_NONE, MAP_SHARED, file, 0);
  close(file);
  if (real == MAP_FAILED || shown == MAP_FAILED) return out_of_memory;
  used += bytes;
  all.ranges.push_back({reinterpret_cast<std::uintptr_t>(shown), bytes,
                        static_cast<unsigned char*>(real), current->device, true, false});
  *at = reinterpret_cast<std::uintptr_t>(shown);
  return ok;
}

MODEL_API int cuMemFree_v2(Address at) {
  if (const int result = enter("cuMemFree"); result != ok) return result;
  drain_streams();
  ModelWorld& all = world();
  const std::lock_guard<std::mutex> locked(all.lock);
  for (auto range = all.ranges.begin(); range != all.ranges.end(); ++range) {
    if (range->begin != at || !range->is_device) continue;
    all.device_bytes[range->device] -= range->bytes;
    munmap(range->real, in_pages(range->bytes));
    munmap(reinterpret_cast<void*>(range->begin), in_pages(range->bytes));
    all.ranges.erase(range);
    return ok;
  }
  return invalid_value;
}

MODEL_API int cuMemHostAlloc(void** at, std::size_t bytes, unsigned) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuMemHostAlloc", &current); result != ok) return result;
  ModelWorld& all = world();
  const std::lock_guard<std::mutex> locked(all.lock);
  if (bytes > all.control.pinned_limit || all.pinned_bytes > all.control.pinned_limit - bytes)
    return out_of_memory;
  void* const made =
      mmap(nullptr, in_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return out_of_memory;
  all.pinned_bytes += bytes;
  all.ranges.push_back(
      {reinterpret_cast<std::uintptr_t>(made), bytes, nullptr, current->device, false, true});
  *at = made;
  return ok;
}

MODEL_API int cuMemFreeHost(void* at) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuMemFreeHost", &current); result != ok) return result;
  drain_streams();
  ModelWorld& all = world();
  const std::lock_guard<std::mutex> locked(all.lock);
  for (auto range = all.ranges.begin(); range != all.ranges.end(); ++range) {
    if (range->begin != reinterpret_cast<std::uintptr_t>(at) || !range->allocated) continue;
    all.pinned_bytes -= range->bytes;
    munmap(at, in_pages(range->bytes));
    all.ranges.erase(range);
    return ok;
  }
  return invalid_value;
}

MODEL_API int cuMemHostRegister_v2(void* at, std::size_t bytes, unsigned) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuMemHostRegister", &current); result != ok) return result;
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  if (bytes == 0 || !is_mapped(begin, bytes)) return invalid_value;
  ModelWorld& all = world();
  if (const unsigned late_ns = all.control.page_ns; late_ns != 0)
    usleep(static_cast<useconds_t>(bytes / 4096 * late_ns / 1000));
  const std::lock_guard<std::mutex> locked(all.lock);
  for (const ModelRange& range : all.ranges)
    if (!range.is_device && overlap_in_pages(range, begin, bytes)) return already_registered;
  if (bytes > all.control.pinned_limit || all.pinned_bytes > all.control.pinned_limit - bytes)
    return out_of_memory;
  all.pinned_bytes += bytes;
  all.ranges.push_back({begin, bytes, nullptr, current->device, false, false});
  ++all.control.registrations;
  ++all.control.registered_now;
  return ok;
}

MODEL_API int cuMemHostUnregister(void* at) {
  ModelContext* current = nullptr;
  if (const int result = enter("cuMemHostUnregister", &current); result != ok) return result;
  ModelWorld& all = world();
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  if (is_used_by_streams(begin)) ++all.control.mistakes;
  const std::lock_guard<std::mutex> locked(all.lock);
  for (auto range = all.ranges.begin(); range != all.ranges.end(); ++range) {
    if (range->is_device || range->allocated || range->begin != begin) continue;
    all.pinned_bytes -= range->bytes;
    all.ranges.erase(range);
    --all.control.registered_now;
    return ok;
  }
  return not_registered;
}

MODEL_API int cuPointerGetAttributes(unsigned count, int* attributes, void** data, Address at) {
  if (const int result = enter("cuPointerGetAttributes"); result != ok) return result;
  const std::lock_guard<std::mutex> locked(world().lock);
  const ModelRange* const range = world().find(at, 1);
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 2:  // kind of memory: 1 the process's, 2 a GPU's, 0 not known
        *static_cast<unsigned*>(data[i]) = range == nullptr ? 0 : range->is_device ? 2 : 1;
        break;
      case 8: *static_cast<unsigned*>(data[i]) = 0; break;  // managed
      case 9: *static_cast<int*>(data[i]) = range == nullptr ? -2 : range->device; break;
      case 11: *static_cast<Address*>(data[i]) = range == nullptr ? 0 : range->begin; break;
      case 12: *static_cast<std::size_t*>(data[i]) = range == nullptr ? 0 : range->bytes; break;
      default: return invalid_value;
    }
  }
  return ok;
}
