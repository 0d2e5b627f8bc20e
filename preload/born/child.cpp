// The arena is shared memory, which a child would write into under its parent's eyes. So in place
// of each allocation the child has private mappings of the arena's file, at its first moment, and
// the copier (copier.cpp) makes the pages its own while the child goes on. The parent waits
// meanwhile, since what it wrote now would show in the copy, until all is copied or the child has
// called exec or ended. (Its other threads go on: what they write during the fork may or may not be
// in the copy, and so may what peers send.)
//
// What has no pages is private memory without a file: else whoever read it first would make a page
// for both. Where the kernel cannot copy so, where pages lie scattered, or have rights of their
// own, the child reads the bytes into such memory before it goes on.
#include "preload/born/child.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/private.hpp"
#include "base/thread/uncancelled.hpp"
#include "preload/born/copier.hpp"
#include "preload/born/heap.hpp"
#include "preload/born/rights.hpp"
#include "preload/born/state.hpp"

namespace haul::preload {
namespace {

// Under the heap's lock, which is held while a thread forks.
constinit int arena_file = -1;
constinit int copied[2] = {-1, -1};
// The fork comes from a signal handler, in the middle of a change of the heap by this very thread.
constinit bool in_change = false;
constinit os::SignalMask mask_before = {};

void close_end(int end) noexcept {
  if (copied[end] >= 0) close(copied[end]);
  copied[end] = -1;
}

void* place_of(std::size_t offset) noexcept {
  return reinterpret_cast<void*>(born_heap.base + offset);
}

// What has pages of [offset, offset + bytes) of the arena's file, in pieces: whole pages, in order.
class FilledPieces {
 public:
  FilledPieces(std::size_t offset, std::size_t bytes) noexcept
      : at_(static_cast<off_t>(offset)), end_(static_cast<off_t>(offset + bytes)) {}
  // False: there are no more, or the file cannot be read.
  bool next(std::size_t* offset, std::size_t* bytes) noexcept {
    if (at_ >= end_) return false;
    const off_t from = lseek(arena_file, at_, SEEK_DATA);
    failed_ = from < 0 && errno != ENXIO;
    if (from < 0 || from >= end_) return false;
    at_ = lseek(arena_file, from, SEEK_HOLE);
    if (at_ < 0 || at_ > end_) at_ = end_;
    *offset = static_cast<std::size_t>(from);
    *bytes = static_cast<std::size_t>(at_ - from);
    return true;
  }
  bool failed() const noexcept { return failed_; }

 private:
  off_t at_, end_;
  bool failed_ = false;
};

// Reads the pieces into private memory; the rest reads as zero there as well.
bool copy_from_file(std::size_t offset, std::size_t bytes) noexcept {
  if (!os::map_private_at(place_of(offset), bytes)) return false;
  FilledPieces pieces(offset, bytes);
  for (std::size_t from = 0, size = 0; pieces.next(&from, &size);) {
    for (const std::size_t to = from + size; from < to;) {
      const ssize_t got = pread(arena_file, place_of(from), to - from, static_cast<off_t>(from));
      if (got <= 0) return false;
      from += static_cast<std::size_t>(got);
    }
  }
  return !pieces.failed();
}

// Maps the pieces privately and leaves the copy to the copier. False: that cannot be had here.
bool copy_later(std::size_t offset, std::size_t bytes) noexcept {
  constexpr unsigned most_pieces = 64;
  FilledPieces pieces(offset, bytes);
  std::size_t from = 0, size = 0;
  bool more = pieces.next(&from, &size);
  if ((!more || size < bytes) && !os::map_private_at(place_of(offset), bytes)) return false;
  for (unsigned count = 0; more; more = pieces.next(&from, &size)) {
    if (++count > most_pieces || !os::map_copy_at(place_of(from), size, arena_file, from) ||
        !plan_copy(born_heap.base + from, size))
      return false;
  }
  return !pieces.failed();
}

bool copy_allocation(std::size_t offset, std::size_t bytes) noexcept {
  const std::uintptr_t at = born_heap.base + offset;
  const bool restricted = has_rights_of_its_own(at, bytes);
  if (!restricted && copy_later(offset, bytes)) return true;
  if (!copy_from_file(offset, bytes)) return false;
  if (restricted) restore_rights(at, bytes);
  return true;
}

}  // namespace

void before_fork() noexcept {
  await_copier();  // its child is to inherit copies, not what is to be copied
  // From here to the handlers after it: a signal handler must not fork as well.
  os::SignalMask mask;
  os::block_signals(&mask);
  in_change = !born_mutex.lock();
  mask_before = mask;
  if (born_heap.inherited.load(std::memory_order_relaxed) || born_heap.used_pages == 0) return;
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
  const os::SignalMask mask = mask_before;
  if (!in_change) born_mutex.unlock();
  os::restore_signals(mask);
}

void after_fork_in_child() noexcept {
  const KeepErrno keep;
  const bool first = !born_heap.inherited.load(std::memory_order_relaxed);
  const std::size_t pages = first ? born_heap.used_pages : 0;
  // First of all: from here on this library leaves alone how these pages are mapped.
  if (pages != 0) born_heap.inherited.store(true, std::memory_order_relaxed);
  if (pages != 0 && born_heap.rights_changed.load(std::memory_order_relaxed)) learn_rights();
  for (std::size_t page = 0; page < pages; ++page) {
    std::atomic<std::uint32_t>& entry = born_heap.table[page];
    const std::uint32_t seen = entry.load(std::memory_order_relaxed);
    if (seen == 0) continue;
    const std::size_t offset = page * born_page_bytes;
    const std::size_t bytes = std::size_t{seen & ~born_kept} * born_page_bytes;
    page += (seen & ~born_kept) - 1;
    // What was being changed goes on being changed in the child, so it is left as it is.
    if ((seen & born_kept) != 0 && !in_change) {
      entry.store(0, std::memory_order_relaxed);
      os::unmap_to_reserve(place_of(offset), bytes);
    } else if (!copy_allocation(offset, bytes)) {
      // Better no memory than the parent's.
      os::unmap(place_of(offset), bytes);
      log(LogLevel::error,
          "fork(): the child has no copy of %zu bytes at %p (no memory, or the arena's descriptor "
          "was closed) and ends if it uses them; run with less memory, or without shared "
          "allocations (--memory=private)",
          bytes, place_of(offset));
    }
  }
  if (pages != 0) start_copier(copied[1]);
  close_end(0);
  close_end(1);
  const os::SignalMask mask = mask_before;
  if (!in_change) {
    if (pages != 0) forget_kept();
    born_mutex.free_in_child();
  }
  os::restore_signals(mask);
}

void watch_forks() noexcept {
  prepare_copier();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace haul::preload
