// The arena is shared memory, which a child would write into under its parent's eyes. So the child
// maps private memory in place of each allocation, at its first moment, and reads the bytes from
// the arena's file into it: a millisecond for each MiB that has pages. The parent waits meanwhile,
// since what it wrote now would show in the copy. (Its other threads go on: what they write during
// the fork may or may not be in the copy, and as they write it.)
//
// The parent waits for the end of a pipe, whose writing side the child alone has: it closes that
// side when it has its copy, and the kernel does so when the child dies.
#include "preload/born/child.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/private.hpp"
#include "base/thread/uncancelled.hpp"
#include "preload/born/heap.hpp"
#include "preload/born/state.hpp"

namespace haul::preload {
namespace {

// Under the heap's lock, which is held while a thread forks.
constinit int arena_file = -1;
constinit int copied[2] = {-1, -1};

void close_end(int end) noexcept {
  if (copied[end] >= 0) close(copied[end]);
  copied[end] = -1;
}

// Reads what has pages of [offset, offset + bytes) of the arena into private memory at the same
// address; the rest reads as zero there as well.
bool copy_from_file(std::size_t offset, std::size_t bytes) noexcept {
  auto* const at = reinterpret_cast<std::byte*>(born_heap.base + offset);
  if (!os::map_private_at(at, bytes)) return false;
  const auto end = static_cast<off_t>(offset + bytes);
  for (auto from = static_cast<off_t>(offset); from < end;) {
    from = lseek(arena_file, from, SEEK_DATA);
    if (from < 0 || from >= end) return from >= 0 || errno == ENXIO;
    off_t to = lseek(arena_file, from, SEEK_HOLE);
    if (to < 0 || to > end) to = end;
    while (from < to) {
      const ssize_t got = pread(arena_file, at + (static_cast<std::size_t>(from) - offset),
                                static_cast<std::size_t>(to - from), from);
      if (got <= 0) return false;
      from += got;
    }
  }
  return true;
}

}  // namespace

void before_fork() noexcept {
  pthread_mutex_lock(&born_mutex);
  if (born_heap.inherited || born_heap.used_pages == 0) return;
  HaulPrivateArena arena;
  haul_private_arena(&arena);
  arena_file = arena.fd;
  // Without descriptors for a pipe the parent does not wait. It says so, since the child may then
  // see what its parent writes next.
  if (pipe2(copied, O_CLOEXEC) != 0) {
    copied[0] = copied[1] = -1;
    log(LogLevel::warning,
        "fork(): no pipe (%s), so the child may see what its parent writes while it copies its "
        "shared allocations; raise ulimit -n",
        describe_errno(errno));
  }
}

void after_fork_in_parent() noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  close_end(1);
  char none = 0;
  while (copied[0] >= 0 && read(copied[0], &none, 1) < 0 && errno == EINTR) {
  }
  close_end(0);
  pthread_mutex_unlock(&born_mutex);
}

void after_fork_in_child() noexcept {
  const KeepErrno keep;
  const std::size_t pages = born_heap.inherited ? 0 : born_heap.used_pages;
  // First of all: from here on this library leaves alone how these pages are mapped.
  if (pages != 0) born_heap.inherited = true;
  for (std::size_t page = 0; page < pages; ++page) {
    std::atomic<std::uint32_t>& entry = born_heap.table[page];
    const std::uint32_t seen = entry.load(std::memory_order_relaxed);
    if (seen == 0) continue;
    const std::size_t offset = page * born_page_bytes;
    const std::size_t bytes = std::size_t{seen & ~born_kept} * born_page_bytes;
    void* const address = reinterpret_cast<void*>(born_heap.base + offset);
    page += (seen & ~born_kept) - 1;
    if ((seen & born_kept) != 0) {
      entry.store(0, std::memory_order_relaxed);
      os::unmap_to_reserve(address, bytes);
    } else if (!copy_from_file(offset, bytes)) {
      // Better no memory than the parent's.
      os::unmap(address, bytes);
      log(LogLevel::error,
          "fork(): the child has no copy of %zu bytes at %p (no memory, or the arena's descriptor "
          "was closed) and ends if it uses them; run with less memory, or without shared "
          "allocations (--memory=private)",
          bytes, address);
    }
  }
  forget_kept();
  close_end(0);
  close_end(1);
  born_mutex = PTHREAD_MUTEX_INITIALIZER;
}

void watch_forks() noexcept {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace haul::preload
