// What the tests under libhaul-mem.so share: children that may be killed, memory with a pattern
// that is written and read by plain loops, and whether a call was taken over.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "transparent/children.hpp"
#include "transparent/under_preload.hpp"

namespace transparent {

inline constexpr std::size_t kib = 1024, mib = 1024 * 1024;

// Whole pages of its own with inaccessible ones on both sides. New: no page is there yet.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : whole_((bytes + 4095) / 4096 * 4096 + 8192), bytes_(bytes) {
    void* at = mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
      std::perror("mmap");
      _exit(1);
    }
    base_ = static_cast<unsigned char*>(at);
    mprotect(base_, 4096, PROT_NONE);
    mprotect(base_ + whole_ - 4096, 4096, PROT_NONE);
  }
  ~Memory() { munmap(base_, whole_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  unsigned char* data() const { return base_ + 4096; }
  std::size_t size() const { return bytes_; }
  void fill(std::uint64_t seed) const {
    auto* words = reinterpret_cast<std::uint64_t*>(data());
    for (std::size_t at = 0; at < bytes_ / 8; ++at) words[at] = word(seed, at);
  }
  // Are the first `bytes` those of fill(seed)?
  bool holds(std::uint64_t seed, std::size_t bytes) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(data());
    for (std::size_t at = 0; at < bytes / 8; ++at)
      if (words[at] != word(seed, at)) return false;
    return true;
  }
  static std::uint64_t word(std::uint64_t seed, std::size_t at) {
    return (at + 1) * 0x9E3779B97F4A7C15u + seed * 0xD6E8FEB86659FD93u;
  }

 private:
  std::size_t whole_, bytes_;
  unsigned char* base_;
};

// Called through these, so that no compiler replaces a call by another function's.
inline void* (*volatile call_memcpy)(void*, const void*, std::size_t) = memcpy;
inline void* (*volatile call_memmove)(void*, const void*, std::size_t) = memmove;
inline void* (*volatile call_memset)(void*, int, std::size_t) = memset;

// What the library has counted in this process and its children. (First called in the parent.)
inline const Table& own_table() {
  static const Table* const table = table_of(getpid());
  if (table == nullptr) {
    std::fprintf(stderr, "no table of this process\n");
    _exit(1);
  }
  return *table;
}
// As munmap(), madvise(MADV_DONTNEED) and mremap(), by a system call that the library does not see.
// 0, and the new place; or -errno.
inline long unmap_unseen(void* at, std::size_t bytes) {
  long result = SYS_munmap;
  asm volatile("syscall" : "+a"(result) : "D"(at), "S"(bytes) : "rcx", "r11", "memory");
  return result;
}
inline long drop_unseen(void* at, std::size_t bytes) {
  long result = SYS_madvise;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(at), "S"(bytes), "d"(long{MADV_DONTNEED})
               : "rcx", "r11", "memory");
  return result;
}
inline void* remap_unseen(void* at, std::size_t bytes, std::size_t new_bytes, long flags,
                          void* to = nullptr) {
  register long mode asm("r10") = flags;
  register void* target asm("r8") = to;
  long result = SYS_mremap;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(at), "S"(bytes), "d"(new_bytes), "r"(mode), "r"(target)
               : "rcx", "r11", "memory");
  return reinterpret_cast<void*>(result);
}

inline std::uint64_t refused(NotShared why) {
  return own_table().refusals[static_cast<std::size_t>(why)].load();
}
inline std::uint64_t taken_over() {
  return counted(&own_table()).calls;
}

// Large calls that take so long that `auto` tries what it has from then on.
inline void copy_for_a_while() {
  using std::chrono::steady_clock;
  const auto begun = steady_clock::now();
  while (steady_clock::now() - begun < std::chrono::milliseconds(300)) {
    const Memory to(64 * mib);
    call_memset(to.data(), 1, to.size());
  }
}

// A copy into new memory comes out right, and by the library.
inline void copy_works(std::size_t bytes = 2 * mib, bool by_library = true) {
  const std::uint64_t before = taken_over();
  const Memory from(bytes), to(bytes);
  from.fill(bytes);
  CHILD_CHECK(call_memcpy(to.data(), from.data(), bytes) == to.data());
  CHILD_CHECK(to.holds(bytes, bytes));
  if (by_library) CHILD_CHECK(taken_over() > before);
}

}  // namespace transparent
