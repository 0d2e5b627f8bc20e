// The functions by which programs allocate, in place of libc's. What is too small, or for what the
// arena has no room, is libc's, or that of the next library which replaces malloc.
#include <dlfcn.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/knobs.hpp"
#include "base/log.hpp"
#include "base/os/keep_errno.hpp"
#include "preload/born/child.hpp"
#include "preload/born/heap.hpp"
#include "preload/next_function.hpp"

namespace haul::preload {
namespace {

using SizeFunction = void*(std::size_t);
constinit NextFunction<SizeFunction> next_malloc("malloc"), next_valloc("valloc"),
    next_pvalloc("pvalloc");
constinit NextFunction<void*(std::size_t, std::size_t)> next_calloc("calloc"),
    next_memalign("memalign"), next_aligned("aligned_alloc");
constinit NextFunction<void*(void*, std::size_t)> next_realloc("realloc");
constinit NextFunction<int(void**, std::size_t, std::size_t)> next_posix("posix_memalign");
constinit NextFunction<void(void*)> next_free("free");
constinit NextFunction<std::size_t(void*)> next_usable("malloc_usable_size");

// nullptr: libc is to be asked.
void* born(std::size_t bytes, std::size_t alignment = born_page_bytes) noexcept {
  bool zeroed = false;
  return bytes >= born_from_bytes() ? bear(bytes, alignment, &zeroed) : nullptr;
}

// Moves an allocation of either kind to one of `bytes` bytes of either kind.
void* move_to(void* to, void* from, std::size_t from_bytes, std::size_t bytes,
              void (*release)(void*)) noexcept {
  if (to == nullptr) return nullptr;
  std::memcpy(to, from, from_bytes < bytes ? from_bytes : bytes);
  release(from);
  return to;
}

void* resize_born(void* block, std::size_t old_bytes, std::size_t bytes) noexcept {
  if (bytes <= old_bytes && bytes >= born_from_bytes()) {
    if (bytes < old_bytes / 2) shrink_born(block, bytes);
    return block;
  }
  // Who grows an allocation once will do so again: addresses cost nothing, and pages come when they
  // are touched.
  void* to = bytes > old_bytes ? born(bytes + bytes / 2) : nullptr;
  if (to == nullptr) to = bytes > old_bytes ? born(bytes) : nullptr;
  if (to == nullptr) to = next_malloc.get()(bytes);
  return move_to(to, block, old_bytes, bytes, bury);
}

// The file whose malloc() the program and its libraries call, if that is not this library: a
// program may have one of its own, and another library may come before this one. Else nullptr.
const char* other_malloc() noexcept {
  Dl_info called{}, own{};
  void* const function = dlsym(RTLD_DEFAULT, "malloc");
  if (function == nullptr || dladdr(function, &called) == 0 ||
      dladdr(reinterpret_cast<void*>(&other_malloc), &own) == 0 ||
      called.dli_fbase == own.dli_fbase)
    return nullptr;
  return called.dli_fname;
}

[[gnu::constructor]] void start() noexcept {
  if (const char* const other = other_malloc(); other != nullptr) {
    // Its free() would get what other functions here had given.
    log(LogLevel::warning,
        "large allocations are private: %s has a malloc() of its own; link the program to libc's "
        "or to a shared library's, or run it with --memory=private",
        other);
    return;
  }
  // Found now, since looking for a function may allocate.
  next_malloc.get();
  next_calloc.get();
  next_realloc.get();
  next_free.get();
  next_usable.get();
  watch_forks();
  begin_births(knob_number(Knob::memory_shared_from_bytes));
}

}  // namespace
}  // namespace haul::preload

using namespace haul::preload;

extern "C" {

[[gnu::visibility("default")]] void* malloc(std::size_t bytes) {
  void* const block = born(bytes);
  return block != nullptr ? block : next_malloc.get()(bytes);
}

[[gnu::visibility("default")]] void free(void* block) {
  if (born_bytes(block) != 0) [[unlikely]]
    return bury(block);
  next_free.get()(block);
}

[[gnu::visibility("default")]] void* calloc(std::size_t count, std::size_t each) {
  std::size_t bytes = 0;
  bool zeroed = false;
  if (__builtin_mul_overflow(count, each, &bytes) || bytes < born_from_bytes())
    return next_calloc.get()(count, each);
  void* const block = bear(bytes, born_page_bytes, &zeroed);
  if (block == nullptr) return next_calloc.get()(count, each);
  return zeroed ? block : std::memset(block, 0, bytes);
}

[[gnu::visibility("default")]] void* realloc(void* block, std::size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  const std::size_t old_bytes = born_bytes(block);
  if (old_bytes == 0) {
    if (bytes < born_from_bytes()) return next_realloc.get()(block, bytes);
    void* const to = born(bytes);
    if (to == nullptr) return next_realloc.get()(block, bytes);
    return move_to(to, block, next_usable.get()(block), bytes, next_free.get());
  }
  if (bytes != 0) return resize_born(block, old_bytes, bytes);
  bury(block);
  return nullptr;
}

[[gnu::visibility("default")]] void* reallocarray(void* block, std::size_t count,
                                                  std::size_t each) {
  std::size_t bytes = 0;
  if (!__builtin_mul_overflow(count, each, &bytes)) return realloc(block, bytes);
  errno = ENOMEM;
  return nullptr;
}

[[gnu::visibility("default")]] void* memalign(std::size_t alignment, std::size_t bytes) {
  void* const block = std::has_single_bit(alignment) ? born(bytes, alignment) : nullptr;
  return block != nullptr ? block : next_memalign.get()(alignment, bytes);
}

[[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  void* const block = std::has_single_bit(alignment) ? born(bytes, alignment) : nullptr;
  return block != nullptr ? block : next_aligned.get()(alignment, bytes);
}

[[gnu::visibility("default")]] int posix_memalign(void** result, std::size_t alignment,
                                                  std::size_t bytes) {
  const bool allowed = std::has_single_bit(alignment) && alignment % sizeof(void*) == 0;
  void* const block = allowed ? born(bytes, alignment) : nullptr;
  if (block == nullptr) return next_posix.get()(result, alignment, bytes);
  *result = block;
  return 0;
}

[[gnu::visibility("default")]] void* valloc(std::size_t bytes) {
  void* const block = born(bytes);
  return block != nullptr ? block : next_valloc.get()(bytes);
}

[[gnu::visibility("default")]] void* pvalloc(std::size_t bytes) {
  void* const block = born(bytes);
  return block != nullptr ? block : next_pvalloc.get()(bytes);
}

[[gnu::visibility("default")]] std::size_t malloc_usable_size(void* block) {
  const std::size_t bytes = born_bytes(block);
  return bytes != 0 ? bytes : next_usable.get()(block);
}

}  // extern "C"
