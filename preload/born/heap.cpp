// A table of what is given out, a short list of what is kept, and one lock.
#include "preload/born/heap.hpp"

#include <haul/haul.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/private.hpp"
#include "preload/born/copier.hpp"
#include "preload/born/history.hpp"
#include "preload/born/state.hpp"

namespace haul::preload {

constinit BornHeap born_heap;
constinit HeapMutex born_mutex;

namespace {

constexpr std::size_t page_bytes = born_page_bytes;
// As far as glibc's M_MMAP_THRESHOLD grows: from here on they go back to the system at once.
constexpr std::size_t most_kept_each = (std::size_t{32} << 20) / page_bytes;
// The arena keeps its allocations in one sorted table, so beyond this many libc's malloc is faster.
constexpr std::size_t most_allocations = 32768;

constinit std::atomic<std::size_t> from_bytes{SIZE_MAX};

struct Kept {
  std::size_t page = 0, pages = 0;
};
// Oldest first.
constinit Kept kept[64];
constinit std::size_t kept_count = 0, kept_pages = 0, keep_pages = 0;
constinit std::size_t allocations = 0;

class HeapLock {
 public:
  HeapLock() noexcept : had_(born_mutex.lock()) {}
  ~HeapLock() {
    if (had_) born_mutex.unlock();
  }
  HeapLock(const HeapLock&) = delete;
  HeapLock& operator=(const HeapLock&) = delete;
  // False where a signal handler has interrupted a function of the heap, and may not touch it.
  bool had() const noexcept { return had_; }

 private:
  bool had_;
};

bool is_child() noexcept {
  return born_heap.inherited.load(std::memory_order_relaxed);
}

void* address_of(std::size_t page) noexcept {
  return reinterpret_cast<void*>(born_heap.base + page * page_bytes);
}

// The page at which an allocation may begin; SIZE_MAX: the address is none of the heap's.
std::size_t page_of(const void* address) noexcept {
  // Acquire: pairs with open_heap().
  const std::size_t bytes = born_heap.bytes.load(std::memory_order_acquire);
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - born_heap.base;
  return offset < bytes && offset % page_bytes == 0 ? offset / page_bytes : SIZE_MAX;
}

// Locked. Learns where the arena is, once there is one.
bool open_heap() noexcept {
  if (born_heap.bytes.load(std::memory_order_relaxed) != 0) return true;
  HaulPrivateArena arena;
  haul_private_arena(&arena);
  if (arena.fd < 0) return false;
  void* table = os::map_anonymous(arena.bytes / page_bytes * sizeof(std::uint32_t));
  if (table == nullptr) return false;
  born_heap.base = arena.base;
  born_heap.table = static_cast<std::atomic<std::uint32_t>*>(table);
  born_heap.bytes.store(arena.bytes, std::memory_order_release);
  return true;
}

// Locked.
void drop_kept(std::size_t index) noexcept {
  kept_pages -= kept[index].pages;
  std::move(kept + index + 1, kept + kept_count, kept + index);
  --kept_count;
}

// Locked. A kept allocation that is neither too small nor much too large; 0 pages: there is none.
Kept take_kept(std::size_t pages, std::size_t alignment) noexcept {
  std::size_t best = kept_count;
  for (std::size_t i = 0; i < kept_count; ++i) {
    const bool aligned = (kept[i].page * page_bytes) % alignment == 0;
    if (!aligned || kept[i].pages < pages || kept[i].pages > pages + pages / 8) continue;
    if (best == kept_count || kept[i].pages < kept[best].pages) best = i;
  }
  if (best == kept_count) return {};
  const Kept found = kept[best];
  drop_kept(best);
  return found;
}

// Locked.
void* give_out(Kept found) noexcept {
  born_heap.used_pages = std::max(born_heap.used_pages, found.page + found.pages);
  // Relaxed: the program hands the address to other threads by means of its own.
  born_heap.table[found.page].store(static_cast<std::uint32_t>(found.pages),
                                    std::memory_order_relaxed);
  ++allocations;
  return address_of(found.page);
}

// What goes back to the system once the lock is no longer held, since the kernel may take a while.
// The arena gives these pages to nobody else before they are free.
class Gone {
 public:
  // Locked.
  void add(Kept one) noexcept {
    born_heap.table[one.page].store(0, std::memory_order_relaxed);
    ones_[count_++] = one;
  }
  // Locked; something is kept. How many pages it has.
  std::size_t take_oldest() noexcept {
    const std::size_t pages = kept[0].pages;
    add(kept[0]);
    drop_kept(0);
    return pages;
  }
  // Not locked.
  void give_back() noexcept {
    for (; count_ != 0; --count_) {
      const Kept& one = ones_[count_ - 1];
      if (haul_free(address_of(one.page)) != HAUL_OK)
        log(LogLevel::debug, "malloc: %zu pages stay with the process: %s", one.pages,
            haul_last_error());
    }
  }

 private:
  Kept ones_[std::size(kept) + 1];
  std::size_t count_ = 0;
};

// Memory of which no page is there yet. nullptr: there is none.
void* bear_fresh(std::size_t pages, std::size_t alignment, bool* to_be_filled) noexcept {
  const HeapLock locked;
  if (!locked.had() || is_child() || born_heap.closed) return nullptr;
  void* const address = haul_private_alloc(pages * page_bytes, alignment);
  // (A handler that forks meanwhile has this go on in the child, which has no copy of it.)
  if (address == nullptr || is_child()) return nullptr;
  const std::size_t page = open_heap() ? page_of(address) : SIZE_MAX;
  if (page == SIZE_MAX) {
    // No table, or the program has closed the arena's descriptor: it stays as it is.
    haul_free(address);
    born_heap.closed = true;
    log(LogLevel::warning,
        "large allocations are not shared any more: the arena's descriptor or the memory for its "
        "table is gone; close only descriptors of your own, and raise ulimit -v");
    return nullptr;
  }
  void* const born = give_out({page, pages});
  if (is_child()) return nullptr;
  *to_be_filled = note_birth(reinterpret_cast<std::uintptr_t>(born), pages * page_bytes);
  return born;
}

}  // namespace

std::size_t born_from_bytes() noexcept {
  return from_bytes.load(std::memory_order_relaxed);
}

void begin_births(std::size_t bytes) noexcept {
  from_bytes.store(bytes, std::memory_order_relaxed);
}

void forget_kept() noexcept {
  kept_count = kept_pages = 0;
}

void* bear(std::size_t bytes, std::size_t alignment, bool* zeroed) noexcept {
  const KeepErrno keep;
  constexpr std::size_t most_pages = born_kept - 1;
  const std::size_t pages = bytes / page_bytes + (bytes % page_bytes != 0 ? 1 : 0);
  if (pages > most_pages || alignment > most_born_alignment) return nullptr;
  alignment = std::max(alignment, bytes >= os::huge_page_bytes ? os::huge_page_bytes : page_bytes);
  Gone gone;
  {
    const HeapLock locked;
    if (!locked.had() || is_child() || born_heap.closed || allocations >= most_allocations)
      return nullptr;
    if (const Kept found = take_kept(pages, alignment); found.pages != 0) {
      *zeroed = false;
      return give_out(found);
    }
    // As many pages go as will come, so what is kept never adds to the most that the program used.
    for (std::size_t left = pages; kept_count != 0 && left != 0;)
      left -= std::min(left, gone.take_oldest());
  }
  gone.give_back();
  bool to_be_filled = false;
  void* const fresh = bear_fresh(pages, alignment, &to_be_filled);
  *zeroed = fresh != nullptr;
  if (to_be_filled) make_pages(reinterpret_cast<std::uintptr_t>(fresh), pages * page_bytes);
  return fresh;
}

std::size_t born_bytes(const void* address) noexcept {
  const std::size_t page = page_of(address);
  if (page == SIZE_MAX) return 0;
  const std::uint32_t entry = born_heap.table[page].load(std::memory_order_relaxed);
  return std::size_t{entry & ~born_kept} * page_bytes;
}

void bury(void* address) noexcept {
  const KeepErrno keep;
  await_copier();
  Gone gone;
  {
    const HeapLock locked;
    if (!locked.had()) return;  // it stays
    const std::size_t page = page_of(address);
    std::atomic<std::uint32_t>& entry = born_heap.table[page];
    const std::uint32_t pages = entry.load(std::memory_order_relaxed);
    if ((pages & born_kept) != 0) {
      log(LogLevel::error, "free(): %p was freed already; free each address once", address);
      std::abort();
    }
    --allocations;
    if (is_child()) {
      entry.store(0, std::memory_order_relaxed);
      os::unmap_to_reserve(address, std::size_t{pages} * page_bytes);
      return;
    }
    note_end(reinterpret_cast<std::uintptr_t>(address), std::size_t{pages} * page_bytes);
    if (pages >= most_kept_each) {
      gone.add({page, pages});
    } else {
      keep_pages = std::max(keep_pages, 2 * std::size_t{pages});
      while (kept_count == std::size(kept) || kept_pages + pages > keep_pages) gone.take_oldest();
      entry.store(pages | born_kept, std::memory_order_relaxed);
      kept[kept_count++] = {page, pages};
      kept_pages += pages;
    }
  }
  gone.give_back();
}

void shrink_born(void* address, std::size_t bytes) noexcept {
  const std::size_t all = born_bytes(address);
  const std::size_t left = whole_pages(bytes);
  if (left < all) give_up_born(static_cast<std::byte*>(address) + left, all - left);
}

bool give_up_born(void* at, std::size_t bytes) noexcept {
  if (!is_child()) return os::remove_pages(at, whole_pages(bytes));
  await_copier();
  return os::map_private_at(at, whole_pages(bytes));
}

void note_rights() noexcept {
  born_heap.rights_changed.store(true, std::memory_order_relaxed);
}

bool is_born_child() noexcept {
  return is_child();
}

bool lies_in_heap(const void* address, std::size_t bytes) noexcept {
  // Acquire: pairs with open_heap().
  const std::size_t size = born_heap.bytes.load(std::memory_order_acquire);
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return size != 0 && bytes != 0 && begin < born_heap.base + size && begin + bytes > born_heap.base;
}

bool touches_born(const void* address, std::size_t bytes) noexcept {
  if (!lies_in_heap(address, bytes)) return false;
  const std::size_t size = born_heap.bytes.load(std::memory_order_relaxed);
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t first = begin > born_heap.base ? (begin - born_heap.base) / page_bytes : 0;
  const std::size_t last = std::min(begin + bytes - 1 - born_heap.base, size - 1) / page_bytes;
  const auto pages_at = [](std::size_t page) noexcept {
    return born_heap.table[page].load(std::memory_order_relaxed) & ~born_kept;
  };
  for (std::size_t page = first; page <= last; ++page)
    if (pages_at(page) != 0) return true;
  // One that begins before may reach into it.
  for (std::size_t page = first; page-- > 0;)
    if (const std::uint32_t pages = pages_at(page); pages != 0) return page + pages > first;
  return false;
}

}  // namespace haul::preload
