#include "base/os/os.hpp"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/os/keep_errno.hpp"
#include "base/sanitizer.hpp"

namespace haul::os {

namespace {

int wait_on(const std::atomic<std::uint32_t>* word, int operation, std::uint32_t expected,
            std::uint64_t timeout_ns) noexcept {
  const KeepErrno keep;
  timespec timeout = {};
  timeout.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000u);
  timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000u);
  const long result = syscall(SYS_futex, word, operation, expected,
                              timeout_ns == 0 ? nullptr : &timeout, nullptr, 0);
  return result < 0 ? -errno : 0;
}

int wake(const std::atomic<std::uint32_t>* word, int operation, int count) noexcept {
  const KeepErrno keep;
  const long result = syscall(SYS_futex, word, operation, count, nullptr, nullptr, 0);
  return result < 0 ? -errno : static_cast<int>(result);
}

}  // namespace

int futex_wait(const std::atomic<std::uint32_t>* word, std::uint32_t expected,
               std::uint64_t timeout_ns) noexcept {
  return wait_on(word, FUTEX_WAIT_PRIVATE, expected, timeout_ns);
}

int futex_wake(const std::atomic<std::uint32_t>* word, int count) noexcept {
  return wake(word, FUTEX_WAKE_PRIVATE, count);
}

int futex_wait_shared(const std::atomic<std::uint32_t>* word, std::uint32_t expected,
                      std::uint64_t timeout_ns) noexcept {
  return wait_on(word, FUTEX_WAIT, expected, timeout_ns);
}

int futex_wake_shared(const std::atomic<std::uint32_t>* word, int count) noexcept {
  return wake(word, FUTEX_WAKE, count);
}

bool membarrier_register() noexcept {
  const KeepErrno keep;
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool membarrier() noexcept {
  const KeepErrno keep;
  return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool membarrier_register_global() noexcept {
  const KeepErrno keep;
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool membarrier_global() noexcept {
  const KeepErrno keep;
  return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

// By system call, not by mmap() and munmap(): other libraries overwrite these while a thread of
// haul's may be inside, and keep track of the program's memory by them, of which haul's is no part
// (base/thread/thread_stack.hpp). Unmapping passes by syscall(), too: libhaul-mem.so takes that
// over and waits there for its lock, which the caller may hold. Sanitizers keep track of memory,
// too, and must be told.
void* map_anonymous(std::size_t bytes) noexcept {
  const KeepErrno keep;
  constexpr int access = PROT_READ | PROT_WRITE;
  constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const at =
      accesses_are_checked
          ? mmap(nullptr, bytes, access, kind, -1, 0)
          : reinterpret_cast<void*>(syscall(SYS_mmap, nullptr, bytes, access, kind, -1L, 0L));
  return at == MAP_FAILED ? nullptr : at;
}

void unmap(void* address, std::size_t bytes) noexcept {
  if (address == nullptr) return;
  if (accesses_are_checked) {
    const KeepErrno keep;
    munmap(address, bytes);
  } else {
    long result = SYS_munmap;
    asm volatile("syscall" : "+a"(result) : "D"(address), "S"(bytes) : "rcx", "r11", "memory");
  }
}

int advise(void* at, std::size_t bytes, int advice) noexcept {
  long result = SYS_madvise;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(at), "S"(bytes), "d"(static_cast<long>(advice))
               : "rcx", "r11", "memory");
  return static_cast<int>(result);
}

bool drop_pages(void* at, std::size_t bytes) noexcept {
  const KeepErrno keep;
  constexpr int dontneed_locked = 24;  // MADV_DONTNEED_LOCKED, since Linux 5.18
  // (By libc's function: registration caches in other libraries must hear of it.)
  return madvise(at, bytes, MADV_DONTNEED) == 0 || madvise(at, bytes, dontneed_locked) == 0;
}

bool drop_own_pages(void* at, std::size_t bytes) noexcept {
  return advise(at, bytes, MADV_DONTNEED) == 0;
}

bool want_huge_pages(void* at, std::size_t bytes) noexcept {
  return advise(at, bytes, MADV_HUGEPAGE) == 0;
}

bool keep_pages_small(void* at, std::size_t bytes) noexcept {
  return advise(at, bytes, MADV_NOHUGEPAGE) == 0;
}

bool wipe_on_fork(void* page, std::size_t bytes) noexcept {
  return advise(page, bytes, MADV_WIPEONFORK) == 0;
}

bool hide_from_children(void* at, std::size_t bytes) noexcept {
  return advise(at, bytes, MADV_DONTFORK) == 0;
}

bool hide_from_dumps(void* at, std::size_t bytes) noexcept {
  return advise(at, bytes, MADV_DONTDUMP) == 0;
}

}  // namespace haul::os
