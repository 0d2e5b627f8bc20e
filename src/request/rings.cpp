// Making, adopting and giving up rings.
//
// A thread gets its ring on its first submit: one at rest if there is one, else a new one. It keeps
// the ring until it ends; what is unfinished then stays in the ring, which comes to rest once all
// of it has ended. The table's lock, with signals blocked, orders these changes; submits, movers
// and tickets never take it. They rely on three things: a ring, once made, stays at its place for
// the life of the process; the set of rings in use is a bitmap with a version; and the cookie, a
// word that a fork wipes, tells tickets and thread slots of this process from inherited ones.
#include "request/rings.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/machine/clock.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/sync/process_lock.hpp"
#include "request/rest.hpp"
#include "request/sharing.hpp"

namespace haul {
namespace {

using os::page_bytes;
constinit std::atomic<std::uint32_t> no_cookie{0};

}  // namespace

constinit RingTable ring_table{{&no_cookie}, {0}};
constinit std::atomic<Ring*> ring_places[max_rings];
constinit RingSet rings_in_use;
constinit std::atomic<std::uint32_t> forks_survived{0};
constinit thread_local ThreadSlot thread_slot;

namespace {

constinit ProcessLock table_lock;
constinit os::SignalMask signals_before_lock{};  // of the lock's holder
constinit std::atomic<std::uint32_t>* cookie_page = nullptr;
constinit std::uint32_t cookie = 0;
// Under the lock; `left` is read without it.
constinit std::atomic<std::uint32_t> left{0};  // rings in use that nobody owns
constinit std::uint32_t late = 0;              // rings owned by threads that are ending
constexpr std::uint32_t least_to_look_over = 64;
constinit std::uint32_t look_over_at = least_to_look_over;  // rings; then all owners are looked for
constinit std::int32_t process = 0;                         // whose threads the owners are
constinit std::atomic<TableHook> new_table_hook{nullptr}, given_up_hook{nullptr};
constinit bool key_made = false;
constinit pthread_key_t exit_key = 0;

void thread_exits(void*) noexcept {
  detach_ring();
}

std::uint32_t make_cookie() noexcept {
  std::uint64_t x = now_ns() ^ static_cast<std::uint64_t>(os::thread_id()) << 40;
  x = (x ^ x >> 31) * 0x7FB5D329728EA185u;
  x ^= x >> 27;
  return static_cast<std::uint32_t>(x) | 1;
}

// Locked. True if the table had to be made. In a bare clone()'s child the cookie reads 0:
// everything there was the parent's, so a new table is made.
bool make_table() noexcept {
  if (ring_table.cookie() != 0) return false;
  void* page = os::map_anonymous(page_bytes);
  if (page == nullptr) return false;
  if (!os::wipe_on_fork(page, page_bytes)) {
    os::unmap(page, page_bytes);
    return false;
  }
  forget_sharing();
  cookie = make_cookie();
  cookie_page = new (page) std::atomic<std::uint32_t>(cookie);
  ring_table.count.store(0, std::memory_order_relaxed);
  rings_in_use.clear();
  forget_resting();
  left.store(0, std::memory_order_relaxed);
  late = 0;
  look_over_at = least_to_look_over;
  process = os::process_id();
  // Release: a thread that sees the cookie sees the table.
  ring_table.cookie_word.store(cookie_page, std::memory_order_release);
  return true;
}

// Holds the lock with signals blocked, so that no handler of this thread's asks for it meanwhile.
class Hold {
 public:
  Hold() noexcept { table_lock.lock(&saved_); }
  ~Hold() { table_lock.unlock(saved_); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  os::SignalMask saved_;
};

// Locked. Leaves the ring without an owner.
void give_up(Ring& ring) noexcept {
  ring.owned.store(false, std::memory_order_relaxed);
  left.fetch_add(1, std::memory_order_relaxed);
  if (std::exchange(ring.late, false)) --late;
}

// Locked.
void rest_left() noexcept {
  if (left.load(std::memory_order_relaxed) == 0) return;
  for_each_ring([](Ring& ring) {
    if (ring.owned.load(std::memory_order_relaxed) ||
        ring.abandoned.load(std::memory_order_relaxed) || !ring.quiet()) {
      return;
    }
    left.fetch_sub(1, std::memory_order_relaxed);
    rest_ring(ring);
  });
}

// Locked. A thread whose destructors came round once too often has not given up its ring. Looks for
// the owners of all rings, of late ones, or of rings until one owner is found; returns how many
// there are.
enum class Owners : std::uint8_t { all, ending, any };
std::uint32_t look_for_owners(Owners which) noexcept {
  std::uint32_t living = 0;
  const std::int32_t self = os::thread_id();
  for_each_ring([&](Ring& ring) {
    if (!ring.owned.load(std::memory_order_relaxed)) return;
    if ((which == Owners::ending && !ring.late) || (which == Owners::any && living != 0)) return;
    // (Another ring with the caller's thread number belonged to a thread that is gone.)
    if (&ring == thread_slot.ring ||
        (ring.owner_thread != self && os::thread_lives(process, ring.owner_thread))) {
      ++living;
    } else {
      give_up(ring);
    }
  });
  return living;
}

// Locked.
Ring* take_ring() noexcept {
  if (late != 0) look_for_owners(Owners::ending);
  rest_left();
  if (Ring* ring = wake_ring(); ring != nullptr) return ring;
  const std::uint32_t count = ring_table.count.load(std::memory_order_relaxed);
  if (count >= look_over_at) {
    // So rarely that it costs each new ring a look at two owners or so.
    look_over_at = std::max(2 * look_for_owners(Owners::all), least_to_look_over);
    rest_left();
    if (Ring* ring = wake_ring(); ring != nullptr) return ring;
  }
  if (count >= max_rings) return nullptr;
  void* place = os::map_anonymous(sizeof(Ring));
  if (place == nullptr) return nullptr;
  os::keep_pages_small(place, sizeof(Ring));  // else a ring at rest would keep more than its head
  Ring& ring = *static_cast<Ring*>(place);
  ring.begin(count, cookie);
  ring_places[count].store(&ring, std::memory_order_relaxed);
  // Release: the ring is made before it is counted.
  ring_table.count.store(count + 1, std::memory_order_release);
  rings_in_use.add(count);
  return &ring;
}

// Locked, so that a fork in a handler finds both done or neither: the ring is the thread's, and the
// thread knows it. The thread has no ring of this process.
Ring* take_own_ring() noexcept {
  thread_slot.ring = nullptr;
  Ring* const ring = take_ring();
  if (ring == nullptr) return nullptr;
  ring->owner_thread = os::thread_id();
  ring->late = thread_slot.left;
  if (ring->late) ++late;
  thread_slot.ring = ring;
  thread_slot.shared = ring_is_shared(ring->index);
  return ring;
}

// For a child of fork.
void inherit(Ring& ring) noexcept {
  const bool own = &ring == thread_slot.ring;
  const bool quiet = ring.quiet();
  const bool publishing = ring.publishing.load(std::memory_order_relaxed);
  ring.completions.leave_to_parent(own && thread_slot.busy);
  ring.inherited_below.store(ring.next_seq(), std::memory_order_relaxed);
  ring.interrupted.store(own && publishing ? ring.next_seq() : 0, std::memory_order_relaxed);
  ring.adopting.store(0, std::memory_order_relaxed);
  if (!quiet) ring.forget_waiters();
  ring.late = false;
  if (own) {
    ring.owner_thread = os::thread_id();
    return;
  }
  left.fetch_add(1, std::memory_order_relaxed);
  // Its thread does not exist here. As a rule the ring is quiet, as the gate left it, and can serve
  // another.
  ring.publishing.store(false, std::memory_order_relaxed);
  ring.owned.store(false, std::memory_order_relaxed);
  if (!quiet || publishing) ring.abandoned.store(true, std::memory_order_relaxed);
}

}  // namespace

Ring* attach_ring(Error* error) noexcept {
  if (Ring* ring = own_ring(); ring != nullptr) return ring;
  const TableHook hook = new_table_hook.load(std::memory_order_relaxed);
  if (ring_table.cookie() == 0 && hook != nullptr) hook();
  Ring* ring = nullptr;
  {
    const Hold hold;
    make_table();
    if (!key_made) key_made = pthread_key_create(&exit_key, thread_exits) == 0;
    ring = own_ring();  // a signal handler may have come in between
    if (ring == nullptr && ring_table.cookie() != 0 && key_made) ring = take_own_ring();
  }
  if (ring == nullptr) {
    *error = make_error(Code::no_memory, 0,
                        "This thread gets no ring: no address space is left for it, or %u threads "
                        "have one; its copies run inline.",
                        max_rings);
    return nullptr;
  }
  pthread_setspecific(exit_key, ring);
  return ring;
}

void detach_ring() noexcept {
  thread_slot.left = true;
  give_up_own_ring();
}

void give_up_own_ring() noexcept {
  if (own_ring() == nullptr) return;
  {
    // Both steps under the lock: in a child that a handler forks, the thread either has the ring or
    // has not.
    const Hold hold;
    if (Ring* ring = own_ring(); ring != nullptr) give_up(*ring);
    thread_slot.ring = nullptr;
    thread_slot.shared = false;
    rest_left();
  }
  if (const TableHook hook = given_up_hook.load(std::memory_order_relaxed); hook != nullptr) hook();
}

void rest_left_rings() noexcept {
  if (left.load(std::memory_order_relaxed) == 0) return;
  const Hold hold;
  rest_left();
}

void on_ring_given_up(TableHook hook) noexcept {
  given_up_hook.store(hook, std::memory_order_relaxed);
}

bool any_ring_owned() noexcept {
  const Hold hold;
  const bool owned = look_for_owners(Owners::any) != 0;
  rest_left();
  return owned;
}

void on_new_table(TableHook hook) noexcept {
  new_table_hook.store(hook, std::memory_order_relaxed);
}

void lock_rings() noexcept {
  os::SignalMask saved;
  table_lock.lock(&saved);
  signals_before_lock = saved;
}

void unlock_rings() noexcept {
  const os::SignalMask saved = signals_before_lock;
  table_lock.unlock(saved);
}

void rings_before_fork() noexcept {
  // A handler that forked during it would, in its child, take away what is being written here.
  os::SignalMask saved;
  os::block_signals(&saved);
  sharing_before_fork();
  os::restore_signals(saved);
}

void rings_after_fork_parent() noexcept {
  sharing_after_fork_parent();
}

bool rings_after_fork_child() noexcept {
  // No holder exists here: the forking thread holds it with signals blocked.
  table_lock.forget();
  forks_survived.fetch_add(1, std::memory_order_relaxed);
  cookie_page->store(cookie, std::memory_order_relaxed);
  if (!sharing_after_fork_child()) {
    cookie_page->store(0, std::memory_order_relaxed);
    return false;
  }
  const std::uint32_t count = ring_table.count.load(std::memory_order_relaxed);
  left.store(0, std::memory_order_relaxed);
  late = 0;
  process = os::process_id();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (rings_in_use.has(i)) inherit(ring_table.ring(i));  // a ring at rest stays so
  }
  return true;
}

}  // namespace haul
