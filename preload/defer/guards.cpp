// The functions by which a program gives memory away, or copies it with the process. They wait for
// the pending calls that they touch, since the kernel tells of it only when the pages are gone.
// While nothing is pending, each costs a load and a jump. (What libc does by itself, and system
// calls that the program makes without libc, are not seen; for destinations the kernel then tells
// in time.)
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>

#include "preload/defer/guards.hpp"
#include "preload/defer/pending.hpp"
#include "preload/defer/samples.hpp"
#include "preload/next_function.hpp"

namespace haul::preload {
namespace {

using OffsetType = long;
constinit NextFunction<int(void*, std::size_t)> next_munmap("munmap");
constinit NextFunction<int(void*, std::size_t, int)> next_mprotect("mprotect"),
    next_madvise("madvise");
constinit NextFunction<void*(void*, std::size_t, std::size_t, int, void*)> next_mremap("mremap");
constinit NextFunction<void*(void*, std::size_t, int, int, int, OffsetType)> next_mmap("mmap");
constinit NextFunction<void(void*)> next_free("free");
constinit NextFunction<void*(void*, std::size_t)> next_realloc("realloc");
constinit NextFunction<pid_t()> next_fork("_Fork");
constinit NextFunction<int(int)> next_mlockall("mlockall");
constinit NextFunction<int(int (*)(void*), void*, int, void*, void*, void*, void*)> next_clone(
    "clone");
constinit NextFunction<std::size_t(void*)> usable_bytes("malloc_usable_size");

void settle_range(const void* begin, std::size_t bytes, bool given_back = true) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  settle({at, at + bytes < at ? UINTPTR_MAX : at + bytes}, given_back);
}

void settle_block(void* block, bool given_back) noexcept {
  if (block == nullptr) return;
  if (auto* usable = usable_bytes.get(); usable != nullptr) {
    // (Neither side of a large call, nor a page of one, lies in a shorter block.)
    const std::size_t bytes = usable(block);
    if (bytes >= least_bytes) settle_range(block, bytes, given_back);
  } else {
    settle_all();
  }
}

// What samples and pending calls have put aside is memory of nobody's that would be locked, too.
// Nothing begins until end_fork().
void settle_for_locking() noexcept {
  settle_for_fork();
  if (!is_own_process()) return;
  const Held held;
  if (end_samples({0, UINTPTR_MAX}, false)) sample_no_more();
}

constexpr long map_fixed = 0x10;  // <sys/mman.h>
constexpr long remap_fixed = 2;

// (MADV_DONTNEED, FREE, REMOVE, DONTFORK, WIPEONFORK, DONTNEED_LOCKED.)
constexpr bool takes_away(long advice) noexcept {
  return advice == 4 || (advice >= 8 && advice <= 10) || advice == 18 || advice == 24;
}

constexpr long no_huge_pages = 15;    // MADV_NOHUGEPAGE
constexpr long disable_for_all = 41;  // PR_SET_THP_DISABLE
constinit std::atomic<bool> huge_pages_forbidden{false};

}  // namespace

bool huge_pages_allowed() noexcept {
  return !huge_pages_forbidden.load(std::memory_order_relaxed);
}

void note_huge_pages(long number, const long* arguments) noexcept {
  if ((number == SYS_madvise && arguments[2] == no_huge_pages) ||
      (number == SYS_prctl && arguments[0] == disable_for_all))
    huge_pages_forbidden.store(true, std::memory_order_relaxed);
}

void settle_before(long number, const long* arguments) noexcept {
  const auto range = [&](int at, bool given_back = true) {
    settle_range(reinterpret_cast<const void*>(arguments[at]),
                 static_cast<std::size_t>(arguments[1]), given_back);
  };
  switch (number) {
    case SYS_munmap: range(0); break;
    case SYS_mprotect: range(0, false); break;
    case SYS_madvise:
      if (takes_away(arguments[2])) range(0);
      break;
    case SYS_mmap:
      if ((arguments[3] & map_fixed) != 0) range(0);
      break;
    case SYS_mremap:
      range(0, false);
      if ((arguments[3] & remap_fixed) != 0)
        settle_range(reinterpret_cast<const void*>(arguments[4]),
                     static_cast<std::size_t>(arguments[2]));
      break;
    default: break;
  }
}

bool begins_settling(long number, const long* arguments) noexcept {
  if (number == SYS_mlockall) {
    settle_for_locking();
  } else if (number == SYS_fork || number == SYS_clone3 ||
             (number == SYS_clone && (arguments[0] & CLONE_VM) == 0)) {
    settle_for_fork();
  } else {
    return false;
  }
  return true;
}

void know_guarded() noexcept {
  next_munmap.get();
  next_mprotect.get();
  next_madvise.get();
  next_mremap.get();
  next_mmap.get();
  next_free.get();
  next_realloc.get();
  next_fork.get();
  next_mlockall.get();
  next_clone.get();
  usable_bytes.get();
  // Its starter may have forbidden them.
  constexpr int is_disabled = 42;  // PR_GET_THP_DISABLE
  if (prctl(is_disabled, 0, 0, 0, 0) > 0) huge_pages_forbidden.store(true);
}

}  // namespace haul::preload

using namespace haul::preload;

extern "C" {

[[gnu::visibility("default")]] int munmap(void* at, std::size_t bytes) noexcept {
  if (watched_count() != 0) [[unlikely]]
    settle_range(at, bytes);
  return next_munmap.get()(at, bytes);
}
[[gnu::visibility("default")]] int mprotect(void* at, std::size_t bytes, int rights) noexcept {
  if (watched_count() != 0) [[unlikely]]
    settle_range(at, bytes, false);
  return next_mprotect.get()(at, bytes, rights);
}
[[gnu::visibility("default")]] int madvise(void* at, std::size_t bytes, int advice) noexcept {
  if (watched_count() != 0 && takes_away(advice)) [[unlikely]]
    settle_range(at, bytes);
  const long arguments[] = {0, 0, advice};
  note_huge_pages(SYS_madvise, arguments);
  return next_madvise.get()(at, bytes, advice);
}
[[gnu::visibility("default")]] void* mremap(void* at, std::size_t bytes, std::size_t new_bytes,
                                            int flags, ...) noexcept {
  std::va_list list;
  va_start(list, flags);
  void* to = (flags & remap_fixed) != 0 ? va_arg(list, void*) : nullptr;
  va_end(list);
  if (watched_count() != 0) [[unlikely]] {
    settle_range(at, bytes, false);
    if (to != nullptr) settle_range(to, new_bytes);
  }
  return next_mremap.get()(at, bytes, new_bytes, flags, to);
}
[[gnu::visibility("default")]] void* mmap(void* at, std::size_t bytes, int rights, int flags,
                                          int fd, OffsetType offset) noexcept {
  if ((flags & map_fixed) != 0 && watched_count() != 0) [[unlikely]]
    settle_range(at, bytes);
  return next_mmap.get()(at, bytes, rights, flags, fd, offset);
}
[[gnu::visibility("default")]] void* mmap64(void* at, std::size_t bytes, int rights, int flags,
                                            int fd, OffsetType offset) noexcept {
  return mmap(at, bytes, rights, flags, fd, offset);
}
[[gnu::visibility("default")]] void free(void* block) noexcept {
  if (watched_count() != 0) [[unlikely]]
    settle_block(block, true);
  next_free.get()(block);
}
[[gnu::visibility("default")]] void* realloc(void* block, std::size_t bytes) noexcept {
  if (watched_count() != 0) [[unlikely]]
    settle_block(block, false);
  return next_realloc.get()(block, bytes);
}
[[gnu::visibility("default")]] int mlockall(int flags) noexcept {
  settle_for_locking();
  const int result = next_mlockall.get()(flags);
  end_fork();
  return result;
}
// fork() without handlers.
[[gnu::visibility("default")]] pid_t _Fork() noexcept {
  settle_for_fork();
  const pid_t child = next_fork.get()();
  end_fork();
  return child;
}
[[gnu::visibility("default")]] int clone(int (*body)(void*), void* stack, int flags, void* argument,
                                         ...) noexcept {
  std::va_list list;
  va_start(list, argument);
  void* more[3];
  for (void*& one : more) one = va_arg(list, void*);
  va_end(list);
  const bool copies_memory = (flags & CLONE_VM) == 0;
  if (copies_memory) settle_for_fork();
  const int child = next_clone.get()(body, stack, flags, argument, more[0], more[1], more[2]);
  if (copies_memory) end_fork();
  return child;
}

}  // extern "C"
