// What every interposed call reads first.
#pragma once

#include <atomic>
#include <cstddef>

namespace haul::preload {

using CopyFunction = void*(void* dst, const void* src, std::size_t length);
using SetFunction = void*(void* dst, int value, std::size_t length);

// All zero until the constructor has run: then every call is "large", and large.cpp, which finds no
// libc yet, moves the bytes itself. So the interposed functions work before this library is
// relocated, as for the resolvers that the loader runs in other libraries.
struct Front {
  // Shorter calls go to libc at once. It is stored last (release), so that whoever sees it sees the
  // functions: by an acquire where large.cpp asks, by x86's order of loads in shorter calls, which
  // bear no fence. (A signal handler, or a thread of another library's constructor, may call
  // between the constructor's stores.)
  std::atomic<std::size_t> threshold;
  // libc's functions, or those of the next library that replaces them.
  CopyFunction* copy;
  CopyFunction* move;
  SetFunction* set;

  std::size_t from_bytes() const noexcept { return threshold.load(std::memory_order_relaxed); }
  bool is_early() const noexcept { return threshold.load(std::memory_order_acquire) == 0; }
};
extern constinit Front front;

}  // namespace haul::preload
