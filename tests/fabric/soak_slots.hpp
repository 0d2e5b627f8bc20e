// What is under way in the soak: a send or a receive, with memory for the longest message.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "rank.hpp"

namespace rank_test {

inline constexpr std::size_t small_limit = 64 * kib, large_limit = 64 * mib;

// Memory that is only there as far as it is touched.
class Buffer {
 public:
  Buffer()
      : memory_(mmap(nullptr, large_limit, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED) give_up("no memory");
  }
  ~Buffer() { munmap(memory_, large_limit); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() const { return memory_; }
  // After a large message: the next one finds fresh pages.
  void forget() const { madvise(memory_, large_limit, MADV_DONTNEED); }

 private:
  void* memory_;
};

struct Sending : Operation {
  Buffer buffer;
  std::size_t size = 0;
  bool busy = false;
};

struct Receiving : Operation {
  Buffer buffer;
  std::uint64_t number = 0;
  bool busy = false;
};

}  // namespace rank_test
