// What the tests under libhaul-malloc.so share.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "sizes.hpp"
#include "transparent/children.hpp"

namespace born {

using transparent::run_child;

// Does the memory lie in haul's arena, where peers can map it?
inline bool is_shared(const void* address, std::size_t bytes = 1) {
  using Function = bool(const void*, std::size_t, std::uint64_t*);
  static auto* const function =
      reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, "haul_private_in_arena"));
  std::uint64_t offset = 0;
  return function != nullptr && function(address, bytes, &offset);
}

inline bool all_are(const void* memory, std::size_t bytes, unsigned char value) {
  const auto* at = static_cast<const unsigned char*>(memory);
  return bytes == 0 || (at[0] == value && std::memcmp(at, at + 1, bytes - 1) == 0);
}

// Keeps the compiler from removing pairs of malloc() and free(), and from knowing sizes.
template <class Pointer>
Pointer* kept(Pointer* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

}  // namespace born
