// Making the arena, mapping it as it fills, and what a child inherits of it.
#include "memory/arena.hpp"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/backoff.hpp"
#include "base/knobs.hpp"
#include "base/os.hpp"
#include "base/sealed.hpp"
#include "memory/page_map.hpp"

namespace haul {

constinit ArenaBounds arena_bounds;

namespace {

constexpr unsigned page_log2 = 12;
constexpr std::size_t page_bytes = std::size_t{1} << page_log2;
constexpr std::size_t smallest_bytes = 4u << 20;  // of an arena that had to shrink
// Of one in a program that locks its memory: reserving counts against its limit for a moment.
constexpr std::size_t locked_bytes = std::size_t{1} << 30;
// What is mapped at a time; where new memory is locked it is also filled in at once.
constexpr std::size_t step_bytes = 64u << 20, locked_step_bytes = 1u << 20;
// What the kernel takes back at a time, with signals blocked: a millisecond.
constexpr std::uint64_t piece_pages = (4u << 20) >> page_log2;

struct Arena {
  os::Descriptor file;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;   // 0: there is none
  std::size_t mapped = 0;  // from base on; the rest is reserved
};

// Not held across a fork, for the program's own fork handlers may wait for a thread that allocates.
constinit pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
// All under the lock; file, base and bytes may also be read after arena_bounds.bytes was.
constinit Arena arena;
constinit PageMap used{0, 0};  // page numbers are addresses / page_bytes
constinit PageMap inherited{0, ~std::uint64_t{0} >> page_log2};

// The state above is between two states: what a child finds then is worth nothing.
constinit std::atomic<bool> changing{false};
// This happened: addresses that are not known may have been inherited.
constinit bool lost = false;

// How often a child has taken over. A thread that a handler forks amid a call, and that goes on in
// the child, tells by it.
constinit std::atomic<std::uint32_t> takeovers{0};

constinit std::atomic<ArenaHook> made_hook{nullptr};
constinit std::atomic<bool> handlers_set{false};

// Whose the state above is: a word in a page that the kernel clears in every child that has memory
// of its own. So a child by a bare clone, which no handler sees, finds out. The lock is taken only
// where there is a word: a child that inherits none has a free lock and no arena.
enum Owner : std::uint32_t { another = 0, ours = 1, taking_over = 2 };
constinit std::atomic<std::atomic<std::uint32_t>*> owner_word{nullptr};

bool is_ours() noexcept {
  // Acquire: pairs with make_owner_word() and take_over().
  const std::atomic<std::uint32_t>* word = owner_word.load(std::memory_order_acquire);
  return word == nullptr || word->load(std::memory_order_acquire) == ours;
}

// Of no lock: two threads may make one at once, and one of them does it in vain.
bool make_owner_word() noexcept {
  if (owner_word.load(std::memory_order_acquire) != nullptr) return true;
  void* page = os::map_anonymous(page_bytes);
  if (page == nullptr) return false;
  if (os::wipe_on_fork(page, page_bytes)) {
    std::atomic<std::uint32_t>* none = nullptr;
    // Release: pairs with is_ours().
    if (owner_word.compare_exchange_strong(none, new (page) std::atomic<std::uint32_t>(ours),
                                           std::memory_order_release, std::memory_order_acquire)) {
      return true;
    }
  }
  os::unmap(page, page_bytes);
  return owner_word.load(std::memory_order_acquire) != nullptr;
}

// In a child, by its only thread: what was the parent's arena is memory like any other.
void forget_parents() noexcept {
  if (changing.load(std::memory_order_relaxed)) {
    // Amid a call of another thread of the parent's, so the tables are worth nothing. What they lie
    // in is left to lie.
    changing.store(false, std::memory_order_relaxed);
    lost = true;
    used = PageMap{0, 0};
    inherited = PageMap{0, ~std::uint64_t{0} >> page_log2};
  }
  for (std::size_t i = 0; i < used.count(); ++i) {
    if (!used[i].leaving) inherited.add(used[i]);
  }
  used.clear();
  if (arena_bounds.bytes.load(std::memory_order_relaxed) != 0) {
    // The part nobody has used is of no use here.
    os::unmap(reinterpret_cast<void*>(arena.base + arena.mapped), arena.bytes - arena.mapped);
    arena.file.close();
  }
  arena_bounds.bytes.store(0, std::memory_order_relaxed);
  arena = Arena{};
}

// A child begins anew: whoever held the lock is not here. (Should it have become
// two threads meanwhile, one does it and the other waits.)
void take_over() noexcept {
  std::atomic<std::uint32_t>& word = *owner_word.load(std::memory_order_acquire);
  for (Backoff backoff;; backoff.pause()) {
    std::uint32_t seen = another;
    if (word.compare_exchange_strong(seen, taking_over, std::memory_order_acquire)) break;
    if (seen == ours) return;
  }
  mutex = PTHREAD_MUTEX_INITIALIZER;
  forget_parents();
  takeovers.fetch_add(1, std::memory_order_relaxed);
  word.store(ours, std::memory_order_release);  // pairs with is_ours()
}

// There is an owner word. As QuietLock: no signal handler finds the lock held by its own thread,
// and none is held up while the thread waits for it.
class Lock {
 public:
  Lock() noexcept {
    for (Backoff backoff; !take(); backoff.pause()) {
    }
    // An exchange, so that no store of a change comes before it.
    changing.exchange(true, std::memory_order_acq_rel);
  }
  ~Lock() {
    changing.store(false, std::memory_order_release);
    pthread_mutex_unlock(&mutex);
    os::restore_signals(saved_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  bool take() noexcept {
    os::block_signals(&saved_);
    if (!is_ours()) take_over();
    if (pthread_mutex_trylock(&mutex) == 0) return true;
    os::restore_signals(saved_);
    return false;
  }

  os::SignalMask saved_;
};

// How large an arena to begin with, where `first` bytes are asked for. Where addresses are limited,
// the program needs most of those that are left.
std::size_t wanted_bytes(std::size_t first) noexcept {
  std::uint64_t bytes = std::min(knob_number(Knob::memory_arena_bytes), os::file_size_limit());
  const std::uint64_t addresses = os::address_space_left();
  if (addresses != UINT64_MAX) {
    const std::uint64_t share = std::max(addresses / 8, std::min(2 * first, addresses / 4));
    bytes = std::min(bytes, std::max<std::uint64_t>(share, smallest_bytes));
  }
  if (os::locks_new_memory()) bytes = std::min<std::uint64_t>(bytes, locked_bytes);
  return bytes & ~(page_bytes - 1);
}

// Locked.
bool make_arena(std::size_t first, Error* error) noexcept {
  std::size_t bytes = wanted_bytes(first);
  int failure = bytes == 0 ? EFBIG : 0;
  while (failure == 0) {
    void* base = os::reserve(bytes);
    const int fd = base != nullptr ? os::make_sealed("haul-arena", bytes) : -ENOMEM;
    if (fd >= 0) {
      const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(base);
      arena = Arena{os::Descriptor::of(fd), address, bytes, 0};
      used = PageMap(address >> page_log2, (address + bytes) >> page_log2);
      arena_bounds.base.store(address, std::memory_order_relaxed);
      // Release: who sees the size sees the base and `arena`; pairs with contains(), arena_view().
      arena_bounds.bytes.store(bytes, std::memory_order_release);
      return true;
    }
    if (base != nullptr) os::unmap(base, bytes);
    if (bytes <= smallest_bytes || fd == -EMFILE || fd == -ENFILE || fd == -ENOSYS) {
      failure = -fd;
    } else {
      bytes = std::max(bytes / 4 & ~(page_bytes - 1), smallest_bytes);
    }
  }
  *error = make_error(Code::no_memory, failure,
                      "No arena for haul_alloc(): %s; raise the limits on addresses (ulimit -v), "
                      "file size (-f) or open files (-n), or use memory of your own.",
                      describe_errno(failure));
  return false;
}

// Locked. The first `bytes` of the arena are mapped, or *error.
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
    // Another thread may have closed it, and opened a file of its own under the number, in between.
    own = arena.file.intact();
    if (!own && done) os::unmap_to_reserve(at, end - arena.mapped);
  }
  if (own && done) {
    arena.mapped = end;
    return true;
  }
  *error =
      own ? make_error(Code::no_memory, ENOMEM,
                       "No addresses or mappings are left for %zu more bytes; free some, or "
                       "raise ulimit -v or vm.max_map_count.",
                       bytes - arena.mapped)
          : make_error(Code::no_memory, EBADF,
                       "The program has closed descriptor %d, haul's arena, so it cannot grow; "
                       "close only descriptors that are yours.",
                       arena.file.number());
  return false;
}

// Locked, and there is an arena.
void* allocate(std::size_t bytes, Error* error) noexcept {
  if (bytes > arena.bytes) {
    *error =
        make_error(Code::invalid, 0,
                   "%zu bytes are more than the arena's %zu; raise HAUL_MEMORY_ARENA_BYTES, or "
                   "ulimit -v or -f, which made it this small.",
                   bytes, arena.bytes);
    return nullptr;
  }
  const std::size_t pages = (bytes + page_bytes - 1) >> page_log2;
  PageMap::Full full;
  const std::uint64_t page = used.take(pages, &full);
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

// Through the mapping, which nobody can have put another file under. The descriptor serves where
// that is refused: memory locked by mlockall(), or write-protected.
bool release_piece(PageRange range) noexcept {
  const std::uintptr_t address = range.begin << page_log2;
  const std::size_t bytes = range.pages() << page_log2;
  if (os::remove_pages(reinterpret_cast<void*>(address), bytes)) return true;
  const int fd = arena.file.get();
  return fd >= 0 && os::punch_hole(fd, address - arena.base, bytes);
}

// Not locked, for much memory takes the kernel seconds: the range is leaving. `since`: takeovers
// when it was found. In a child of later it is none of the caller's: the parent goes on, and may
// have given these pages out again.
enum class Release : std::uint8_t { done, refused, parents };
Release release_pages(PageRange range, std::uint32_t since) noexcept {
  Release result = Release::done;
  for (std::uint64_t page = range.begin; page != range.end && result == Release::done;) {
    const std::uint64_t end = std::min(range.end, (page / piece_pages + 1) * piece_pages);
    // No handler forks between the look and the piece.
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

// Frees an address of this process's own. False: it is none.
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

void* arena_allocate(std::size_t bytes, Error* error) noexcept {
  if (bytes == 0) {
    *error = make_error(Code::invalid, 0, "0 bytes were asked for; ask for 1 or more.");
    return nullptr;
  }
  if (!make_owner_word()) {
    *error =
        make_error(Code::no_memory, ENOMEM,
                   "No page for haul_alloc() that children find empty (MADV_WIPEONFORK); raise "
                   "ulimit -v, or use memory of your own.");
    return nullptr;
  }
  // Unlocked, since it may call malloc. (Until it has returned a fork is as a bare clone to the
  // child.)
  if (!handlers_set.exchange(true, std::memory_order_relaxed)) {
    pthread_atfork(nullptr, nullptr, arena_after_fork_child);
  }
  void* address = nullptr;
  bool made = false;
  {
    const Lock locked;
    if (arena.bytes == 0) made = make_arena(bytes, error);
    if (arena.bytes != 0) address = allocate(bytes, error);
  }
  const ArenaHook hook = made_hook.load(std::memory_order_relaxed);
  if (made && hook != nullptr) hook();
  return address;
}

Code arena_free(void* address, Error* error) noexcept {
  // Without an owner word nothing was ever allocated.
  if (reinterpret_cast<std::uintptr_t>(address) % page_bytes == 0 &&
      owner_word.load(std::memory_order_acquire) != nullptr) {
    const std::uint64_t page = reinterpret_cast<std::uintptr_t>(address) >> page_log2;
    bool refused = false;
    const bool known = free_own(page, &refused) || forget_inherited(page);
    if (refused) {
      *error = make_error(Code::io, 0,
                          "The kernel does not take the pages at %p back; unlock them (munlock) "
                          "and allow madvise(), then free them again.",
                          address);
      return error->code;
    }
    if (known) return Code::ok;
  }
  *error = make_error(Code::invalid, 0,
                      "%p is nothing that haul_alloc() returned, or is freed already; free each "
                      "address once.",
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
  // (Another child handler may have come before and asked for memory: that took over.)
  if (!is_ours()) take_over();
}

}  // namespace haul
