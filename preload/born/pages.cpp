// The functions by which a program changes pages itself, where these lie in shared allocations:
// there the kernel would do something else than with private memory.
//
// What the program gives back reads as zero afterwards, as with private memory. What it moves gets
// a private copy, since a mapping of the arena elsewhere would be known to nobody. Another mapping
// in place of an allocation is refused: messages would go on finding the arena's bytes there.
// (Programs do these things to memory that they have mapped, which is never shared, and hardly to
// what malloc() has given them.)
//
// In a child, whose copies are private mappings of the arena's file, what is given up or moved
// would be the file's again, that is its parent's. So they are treated in the same way; but
// unmapped or replaced they may be. Whatever changes them waits until they are copied.
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstring>

#include "base/log.hpp"
#include "preload/born/child.hpp"
#include "preload/born/copier.hpp"
#include "preload/born/heap.hpp"
#include "preload/next_function.hpp"

namespace haul::preload {
namespace {

using OffsetType = long;
constinit NextFunction<int(void*, std::size_t)> next_munmap("munmap");
constinit NextFunction<int(void*, std::size_t, int)> next_madvise("madvise"),
    next_mprotect("mprotect");
constinit NextFunction<void*(void*, std::size_t, std::size_t, int, void*)> next_mremap("mremap");
constinit NextFunction<void*(void*, std::size_t, int, int, int, OffsetType)> next_mmap("mmap");
constinit NextFunction<long(long, long, long, long, long, long, long)> next_syscall("syscall");
constinit NextFunction<pid_t()> next_fork("_Fork");
constinit NextFunction<int(int (*)(void*), void*, int, void*, void*, void*, void*)> next_clone(
    "clone");

// What a process made by clone() begins with, once it has its memory.
struct ClonedBody {
  int (*body)(void*);
  void* argument;
};

constexpr int dont_need_locked = 24;  // MADV_DONTNEED_LOCKED, Linux 5.18

bool touches_shared(const void* at, std::size_t bytes) noexcept {
  return !is_born_child() && touches_born(at, bytes);
}

void before_change(const void* at, std::size_t bytes) noexcept {
  if (lies_in_heap(at, bytes)) await_copier();
}

// Advice by which a page's bytes are given up.
bool gives_up(int advice) noexcept {
  return advice == MADV_DONTNEED || advice == MADV_FREE || advice == dont_need_locked;
}

// Does this system call make a process with a copy of the memory?
bool copies_memory(long number, const long* arguments) noexcept {
  if (number == SYS_clone3) {
    const auto* const flags = reinterpret_cast<const std::uint64_t*>(arguments[0]);
    return flags != nullptr && (*flags & CLONE_VM) == 0;
  }
  return number == SYS_fork || (number == SYS_clone && (arguments[0] & CLONE_VM) == 0);
}

// By a system call: communication libraries patch the code of madvise(), and call syscall() there.
int give_up(void* at, std::size_t bytes) noexcept {
  if (is_born_child()) {
    if (give_up_born(at, bytes)) return 0;
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(next_syscall.get()(SYS_madvise, reinterpret_cast<long>(at),
                                             static_cast<long>(whole_pages(bytes)), MADV_REMOVE, 0,
                                             0, 0));
}

void* move_away(void* at, std::size_t bytes, std::size_t new_bytes, int flags, void* to) noexcept {
  if (new_bytes == 0 || (reinterpret_cast<std::uintptr_t>(at) % born_page_bytes) != 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  const bool fixed = (flags & MREMAP_FIXED) != 0;
  if (!fixed && whole_pages(new_bytes) <= whole_pages(bytes)) {
    const std::size_t left = whole_pages(new_bytes);
    if (left < whole_pages(bytes))
      give_up(static_cast<std::byte*>(at) + left, whole_pages(bytes) - left);
    return at;
  }
  if ((flags & MREMAP_MAYMOVE) == 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* const copy = next_mmap.get()(fixed ? to : nullptr, new_bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED : 0), -1, 0);
  if (copy == MAP_FAILED) return MAP_FAILED;
  std::memcpy(copy, at, bytes < new_bytes ? bytes : new_bytes);
  give_up(at, bytes);
  return copy;
}

}  // namespace
}  // namespace haul::preload

using namespace haul::preload;

extern "C" {

[[gnu::visibility("default")]] int munmap(void* at, std::size_t bytes) noexcept {
  before_change(at, bytes);
  return touches_shared(at, bytes) ? give_up(at, bytes) : next_munmap.get()(at, bytes);
}

[[gnu::visibility("default")]] int madvise(void* at, std::size_t bytes, int advice) noexcept {
  return gives_up(advice) && touches_born(at, bytes) ? give_up(at, bytes)
                                                     : next_madvise.get()(at, bytes, advice);
}

[[gnu::visibility("default")]] int mprotect(void* at, std::size_t bytes, int rights) noexcept {
  before_change(at, bytes);
  if ((rights & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE) && touches_born(at, bytes))
    note_rights();
  return next_mprotect.get()(at, bytes, rights);
}

[[gnu::visibility("default")]] void* mremap(void* at, std::size_t bytes, std::size_t new_bytes,
                                            int flags, ...) noexcept {
  std::va_list list;
  va_start(list, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(list, void*) : nullptr;
  va_end(list);
  before_change(at, bytes);
  if (touches_born(at, bytes)) return move_away(at, bytes, new_bytes, flags, to);
  return next_mremap.get()(at, bytes, new_bytes, flags, to);
}

[[gnu::visibility("default")]] void* mmap(void* at, std::size_t bytes, int rights, int flags,
                                          int fd, OffsetType offset) noexcept {
  if ((flags & MAP_FIXED) != 0) before_change(at, bytes);
  if ((flags & MAP_FIXED) != 0 && touches_shared(at, bytes)) {
    haul::log(haul::LogLevel::warning,
              "mmap(): %zu bytes at %p are a shared allocation, in whose place nothing can be "
              "mapped; run the program with --memory=private",
              bytes, at);
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return next_mmap.get()(at, bytes, rights, flags, fd, offset);
}
[[gnu::visibility("default")]] void* mmap64(void* at, std::size_t bytes, int rights, int flags,
                                            int fd, OffsetType offset) noexcept {
  return mmap(at, bytes, rights, flags, fd, offset);
}

[[gnu::visibility("default")]] long syscall(long number, ...) noexcept {
  std::va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  const auto call = [&] {
    return next_syscall.get()(number, arguments[0], arguments[1], arguments[2], arguments[3],
                              arguments[4], arguments[5]);
  };
  if (number == SYS_madvise && gives_up(static_cast<int>(arguments[2]))) {
    auto* const at = reinterpret_cast<void*>(arguments[0]);
    const auto bytes = static_cast<std::size_t>(arguments[1]);
    return touches_born(at, bytes) ? give_up(at, bytes) : call();
  }
  if (!copies_memory(number, arguments)) return call();
  before_fork();
  const long child = call();
  child == 0 ? after_fork_in_child() : after_fork_in_parent();
  return child;
}

// fork() without handlers.
[[gnu::visibility("default")]] pid_t _Fork() noexcept {
  before_fork();
  const pid_t child = next_fork.get()();
  child == 0 ? after_fork_in_child() : after_fork_in_parent();
  return child;
}
[[gnu::visibility("default")]] int clone(int (*body)(void*), void* stack, int flags, void* argument,
                                         ...) noexcept {
  std::va_list list;
  va_start(list, argument);
  void* more[3];
  for (void*& one : more) one = va_arg(list, void*);
  va_end(list);
  if ((flags & CLONE_VM) != 0)
    return next_clone.get()(body, stack, flags, argument, more[0], more[1], more[2]);
  const ClonedBody begun{body, argument};
  before_fork();
  const int child = next_clone.get()(
      [](void* begin) {
        const ClonedBody cloned = *static_cast<const ClonedBody*>(begin);
        after_fork_in_child();
        return cloned.body(cloned.argument);
      },
      stack, flags, const_cast<ClonedBody*>(&begun), more[0], more[1], more[2]);
  after_fork_in_parent();
  return child;
}

}  // extern "C"
