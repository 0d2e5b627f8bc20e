// Makes the arena, maps it as it fills, and deals with what a child inherits of it.
//
// One lock, with signals blocked, guards the tables; readers of arena_bounds take none: the size is
// stored last (release), so a thread that sees the size (acquire) sees the base and the file. The
// lock is not held across a fork, since the program's own fork handlers may wait for a thread that
// allocates. Instead a word in a page that the kernel clears in every child says whose the tables
// are. A child that finds it 0, a bare clone()'s too, takes over before it does anything else;
// `changing_arena` tells it whether the fork came in the middle of another thread's change, which
// makes the tables worthless. Pages are given back without the lock, piece by piece, from a range
// that is marked as leaving; by `takeovers` a call during which a handler forks can tell that it
// goes on in the child.
#include "memory/arena.hpp"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "base/knobs.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/sync/backoff.hpp"
#include "memory/page_map.hpp"

namespace haul {

constinit ArenaBounds arena_bounds;

namespace {

constexpr unsigned page_log2 = std::countr_zero(os::page_bytes);
constexpr std::size_t smallest_bytes = 4u << 20;  // when an arena had to shrink
// In a program that locks its memory: reserving counts against its limit for a moment.
constexpr std::size_t locked_bytes = std::size_t{1} << 30;
// How much is mapped at a time; where new memory is locked, it is filled in at once as well.
constexpr std::size_t step_bytes = 64u << 20, locked_step_bytes = 1u << 20;
// How much the kernel takes back at a time, with signals blocked: a millisecond's worth.
constexpr std::uint64_t piece_pages = (4u << 20) >> page_log2;

struct Arena {
  os::Descriptor file;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;   // 0: there is none
  std::size_t mapped = 0;  // from base on; the rest is reserved
};

constinit pthread_mutex_t arena_mutex = PTHREAD_MUTEX_INITIALIZER;
// All under the lock, but file, base and bytes may also be read once arena_bounds.bytes was read.
constinit Arena arena;
constinit PageMap used{0, 0};  // page numbers are addresses / os::page_bytes
constinit PageMap inherited{0, ~std::uint64_t{0} >> page_log2};

constinit std::atomic<bool> changing_arena{false};
// A fork came during a change: unknown addresses may be inherited ones.
constinit bool lost = false;

// How often a child has taken over.
constinit std::atomic<std::uint32_t> takeovers{0};

constinit std::atomic<ArenaHook> made_hook{nullptr};
constinit std::atomic<bool> handlers_set{false};

// Whose the state above is. The lock is taken only if there is a word: a child that inherits none
// has a free lock and no arena.
enum Owner : std::uint32_t { another = 0, ours = 1, taking_over = 2 };
constinit std::atomic<std::atomic<std::uint32_t>*> owner_word{nullptr};

bool is_ours() noexcept {
  // Acquire: pairs with make_owner_word() and take_over().
  const std::atomic<std::uint32_t>* word = owner_word.load(std::memory_order_acquire);
  return word == nullptr || word->load(std::memory_order_acquire) == ours;
}

// Takes no lock: two threads may make one at once, and one of them makes it in vain.
bool make_owner_word() noexcept {
  if (owner_word.load(std::memory_order_acquire) != nullptr) return true;
  void* page = os::map_anonymous(os::page_bytes);
  if (page == nullptr) return false;
  if (os::wipe_on_fork(page, os::page_bytes)) {
    std::atomic<std::uint32_t>* none = nullptr;
    // Release: pairs with is_ours().
    if (owner_word.compare_exchange_strong(none, new (page) std::atomic<std::uint32_t>(ours),
                                           std::memory_order_release, std::memory_order_acquire)) {
      return true;
    }
  }
  os::unmap(page, os::page_bytes);
  return owner_word.load(std::memory_order_acquire) != nullptr;
}

// For a child, by its only thread: what was the parent's arena becomes memory like any other.
void forget_parents() noexcept {
  if (changing_arena.load(std::memory_order_relaxed)) {
    // The memory of the tables is abandoned.
    changing_arena.store(false, std::memory_order_relaxed);
    lost = true;
    used = PageMap{0, 0};
    inherited = PageMap{0, ~std::uint64_t{0} >> page_log2};
  }
  for (std::size_t i = 0; i < used.count(); ++i) {
    if (!used[i].leaving) inherited.add(used[i]);
  }
  used.clear();
  if (arena_bounds.bytes.load(std::memory_order_relaxed) != 0) {
    os::unmap(reinterpret_cast<void*>(arena.base + arena.mapped), arena.bytes - arena.mapped);
    arena.file.close();
  }
  arena_bounds.bytes.store(0, std::memory_order_relaxed);
  arena = Arena{};
}

// Makes a child start afresh: the lock's holder does not exist here. (Should the child have two
// threads by now, one does it and the other waits.)
void take_over() noexcept {
  std::atomic<std::uint32_t>& word = *owner_word.load(std::memory_order_acquire);
  for (Backoff backoff;; backoff.pause()) {
    std::uint32_t seen = another;
    if (word.compare_exchange_strong(seen, taking_over, std::memory_order_acquire)) break;
    if (seen == ours) return;
  }
  arena_mutex = PTHREAD_MUTEX_INITIALIZER;
  forget_parents();
  takeovers.fetch_add(1, std::memory_order_relaxed);
  word.store(ours, std::memory_order_release);  // pairs with is_ours()
}

// Requires an owner word. Otherwise as QuietLock.
class Lock {
 public:
  Lock() noexcept {
    for (Backoff backoff; !take(); backoff.pause()) {
    }
    // An exchange, so that no store of a change becomes visible before it.
    changing_arena.exchange(true, std::memory_order_acq_rel);
  }
  ~Lock() {
    changing_arena.store(false, std::memory_order_release);
    pthread_mutex_unlock(&arena_mutex);
    os::restore_signals(saved_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  bool take() noexcept {
    os::block_signals(&saved_);
    if (!is_ours()) take_over();
    if (pthread_mutex_trylock(&arena_mutex) == 0) return true;
    os::restore_signals(saved_);
    return false;
  }

  os::SignalMask saved_;
};

// How large an arena to try first, if `first` bytes are asked for. Where addresses are limited, the
// program needs most of those that are left.
std::size_t wanted_bytes(std::size_t first) noexcept {
  std::uint64_t bytes = std::min(knob_number(Knob::memory_arena_bytes), os::file_size_limit());
  const std::uint64_t addresses = os::address_space_left();
  if (addresses != UINT64_MAX) {
    const std::uint64_t share = std::max(addresses / 8, std::min(2 * first, addresses / 4));
    bytes = std::min(bytes, std::max<std::uint64_t>(share, smallest_bytes));
  }
  if (os::locks_new_memory()) bytes = std::min<std::uint64_t>(bytes, locked_bytes);
  return bytes & ~(os::page_bytes - 1);
}

// Locked.
bool make_arena(std::size_t first, Error* error) noexcept {
  std::size_t bytes = wanted_bytes(first);
  int failure = bytes == 0 ? EFBIG : 0;
  while (failure == 0) {
    void* base = os::reserve(bytes, os::huge_page_bytes);
    const int fd = base != nullptr ? os::make_sealed("haul-arena", bytes) : -ENOMEM;
    if (fd >= 0) {
      const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(base);
      arena = Arena{os::Descriptor::of(fd), address, bytes, 0};
      used = PageMap(address >> page_log2, (address + bytes) >> page_log2);
      arena_bounds.base.store(address, std::memory_order_relaxed);
      // Release: a thread that sees the size sees the base and `arena`; pairs with contains() and
      // arena_view().
      arena_bounds.bytes.store(bytes, std::memory_order_release);
      return true;
    }
    if (base != nullptr) os::unmap(base, bytes);
    if (bytes <= smallest_bytes || fd == -EMFILE || fd == -ENFILE || fd == -ENOSYS) {
      failure = -fd;
    } else {
      bytes = std::max(bytes / 4 & ~(os::page_bytes - 1), smallest_bytes);
    }
  }
  *error = make_error(Code::no_memory, failure,
                      "No arena for haul_alloc(): %s; raise the limits on addresses (ulimit -v), "
                      "file size (-f) or open files (-n), or use memory of your own.",
                      describe_errno(failure));
  return false;
}

// Locked. Maps the first `bytes` of the arena, or sets *error.
bool map_up_to(std::size_t bytes, Error* error) noexcept {
  if (bytes <= arena.mapped) return true;
  void* at = reinterpret_cast<void*>(arena.base + arena.mapped);
  const std::size_t step = os::locks_new_memory() ? locked_step_bytes : step_bytes;
  std::size_t end = std::min((bytes + step - 1) & ~(step - 1), arena.bytes);
  const int fd = arena.file.get();
  bool own = fd >= 0;
  bool done = false;
  if (own) {
    done = os::map_shared(at, end - arena.mapped, fd, arena.mapped) != nullptr;
    if (!done) {
      end = bytes;
      done = os::map_shared(at, end - arena.mapped, fd, arena.mapped) != nullptr;
    }
    // Another thread may have closed it in between, and opened a file of its own under its number.
    own = arena.file.intact();
    if (!own && done) os::unmap_to_reserve(at, end - arena.mapped);
  }
  if (own && done) {
    arena.mapped = end;
    return true;
  }
  *error = own ? make_error(Code::no_memory, ENOMEM,
                            "No addresses or mappings are left for %zu more bytes; free some, or "
                            "raise ulimit -v or vm.max_map_count.",
                            bytes - arena.mapped)
               : make_error(Code::no_memory, EBADF,
                            "The program has closed descriptor %d, haul's arena, which cannot grow "
                            "any more; close only descriptors of your own.",
                            arena.file.number());
  return false;
}

// Locked; there is an arena.
void* allocate(std::size_t bytes, std::size_t alignment, Error* error) noexcept {
  if (bytes > arena.bytes) {
    *error =
        make_error(Code::invalid, 0,
                   "%zu bytes are more than the arena's %zu; raise HAUL_MEMORY_ARENA_BYTES, or "
                   "ulimit -v or -f, which made it this small.",
                   bytes, arena.bytes);
    return nullptr;
  }
  const std::size_t pages = (bytes + os::page_bytes - 1) >> page_log2;
  PageMap::Full full;
  const std::uint64_t page = used.take(pages, &full, alignment >> page_log2);
  if (page == PageMap::no_page) {
    *error =
        full == PageMap::Full::table
            ? make_error(Code::no_memory, ENOMEM,
                         "No memory for the table of %zu allocations; free some.", used.count())
            : make_error(Code::no_memory, 0,
                         "The arena of %zu bytes has no gap of %zu bytes; free some, or raise "
                         "HAUL_MEMORY_ARENA_BYTES.",
                         arena.bytes, bytes);
    return nullptr;
  }
  const std::uintptr_t address = page << page_log2;
  if (!map_up_to(address - arena.base + (pages << page_log2), error)) {
    used.give_back(page);
    return nullptr;
  }
  return reinterpret_cast<void*>(address);
}

// Through the mapping, under which nobody can have put another file. If that is refused (memory
// locked by mlockall(), or write-protected), the descriptor is used.
bool release_piece(PageRange range) noexcept {
  const std::uintptr_t address = range.begin << page_log2;
  const std::size_t bytes = range.pages() << page_log2;
  if (os::remove_pages(reinterpret_cast<void*>(address), bytes)) return true;
  const int fd = arena.file.get();
  return fd >= 0 && os::punch_hole(fd, address - arena.base, bytes);
}

// Without the lock, since much memory takes the kernel seconds: the range is marked as leaving.
// `since`: the takeovers when it was found. In a child that came after that the range is not the
// caller's: the parent goes on, and may have given these pages out again.
enum class Release : std::uint8_t { done, refused, parents };
Release release_pages(PageRange range, std::uint32_t since) noexcept {
  Release result = Release::done;
  for (std::uint64_t page = range.begin; page != range.end && result == Release::done;) {
    const std::uint64_t end = std::min(range.end, (page / piece_pages + 1) * piece_pages);
    // Signals are blocked so that no handler forks between the look and the piece.
    os::SignalMask saved;
    os::block_signals(&saved);
    if (!is_ours() || takeovers.load(std::memory_order_relaxed) != since) {
      result = Release::parents;
    } else if (!release_piece(PageRange{page, end})) {
      result = Release::refused;
    }
    os::restore_signals(saved);
    page = end;
  }
  return result;
}

// Frees an address of this process's own. False: it is not one.
bool free_own(std::uint64_t page, bool* refused) noexcept {
  PageRange range;
  std::uint32_t since = 0;
  {
    const Lock locked;
    range = used.leave(page);
    since = takeovers.load(std::memory_order_relaxed);
  }
  if (range.pages() == 0) return false;
  const Release released = release_pages(range, since);
  const Lock locked;
  if (takeovers.load(std::memory_order_relaxed) != since) return true;
  *refused = released == Release::refused;
  if (*refused) {
    used.stay(page);
  } else {
    used.give_back(page);
  }
  return true;
}

// Forgets an address that was inherited, or may have been. False: it was not.
bool forget_inherited(std::uint64_t page) noexcept {
  const Lock locked;
  return inherited.give_back(page) || (lost && !arena_bounds.contains(page << page_log2, 1));
}

}  // namespace

void* arena_allocate(std::size_t bytes, std::size_t alignment, Error* error) noexcept {
  if (bytes == 0) {
    *error = make_error(Code::invalid, 0, "0 bytes were asked for; ask for 1 or more.");
    return nullptr;
  }
  if (!make_owner_word()) {
    *error = make_error(Code::no_memory, ENOMEM,
                        "haul_alloc() gets no page that children find empty (MADV_WIPEONFORK); "
                        "raise ulimit -v, or use memory of your own.");
    return nullptr;
  }
  // Without the lock, since it may call malloc. (Until it has returned, a fork's child is like a
  // bare clone()'s.)
  if (!handlers_set.exchange(true, std::memory_order_relaxed)) {
    pthread_atfork(nullptr, nullptr, arena_after_fork_child);
  }
  void* address = nullptr;
  bool made = false;
  {
    const Lock locked;
    if (arena.bytes == 0) made = make_arena(bytes, error);
    if (arena.bytes != 0) address = allocate(bytes, alignment, error);
  }
  const ArenaHook hook = made_hook.load(std::memory_order_relaxed);
  if (made && hook != nullptr) hook();
  return address;
}

Code arena_free(void* address, Error* error) noexcept {
  // Without an owner word nothing was ever allocated.
  if (reinterpret_cast<std::uintptr_t>(address) % os::page_bytes == 0 &&
      owner_word.load(std::memory_order_acquire) != nullptr) {
    const std::uint64_t page = reinterpret_cast<std::uintptr_t>(address) >> page_log2;
    bool refused = false;
    const bool known = free_own(page, &refused) || forget_inherited(page);
    if (refused) {
      *error = make_error(Code::io, 0,
                          "The kernel refuses to take back the pages at %p; unlock them (munlock) "
                          "and allow madvise(), then free them again.",
                          address);
      return error->code;
    }
    if (known) return Code::ok;
  }
  *error = make_error(
      Code::invalid, 0,
      "%p was not returned by haul_alloc(), or was freed already; free each address once.",
      address);
  return error->code;
}

ArenaView arena_view() noexcept {
  if (!is_ours()) const Lock taken_over;
  // Acquire: pairs with make_arena(). What it wrote then stays as it is.
  const std::size_t bytes = arena_bounds.bytes.load(std::memory_order_acquire);
  const int fd = bytes != 0 ? arena.file.get() : -1;
  return fd >= 0 ? ArenaView{fd, arena.base, bytes} : ArenaView{};
}

void on_arena_made(ArenaHook hook) noexcept {
  made_hook.store(hook, std::memory_order_relaxed);
}

void arena_after_fork_child() noexcept {
  // (Another child handler may have run before and asked for memory, which took over.)
  if (!is_ours()) take_over();
}

}  // namespace haul
