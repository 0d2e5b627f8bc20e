// Making, adopting and giving up rings.
#include "request/rings.hpp"

#include <pthread.h>

#include <new>

#include "base/clock.hpp"
#include "base/os.hpp"
#include "base/process_lock.hpp"
#include "request/sharing.hpp"

namespace haul {
namespace {

constexpr std::size_t page_bytes = 4096;
constinit std::atomic<std::uint32_t> no_cookie{0};

}  // namespace

constinit RingTable ring_table{{&no_cookie}, {nullptr}, {0}};
constinit thread_local ThreadSlot thread_slot;

namespace {

constinit ProcessLock table_lock;
constinit std::atomic<std::uint32_t>* cookie_page = nullptr;
constinit std::uint32_t cookie = 0;
constinit std::uint32_t room = 0;
constinit std::atomic<TableHook> new_table_hook{nullptr};
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

// Locked. True if the table had to be made. In a child by a bare clone the cookie reads 0: all
// there is was the parent's, so begin anew.
bool make_table() noexcept {
  if (ring_table.cookie() != 0) return false;
  void* page = os::map_anonymous(page_bytes);
  if (page == nullptr) return false;
  void* rings = nullptr;
  // A process with a small address-space limit gets fewer.
  for (room = max_rings; rings == nullptr && room >= 16; room /= 4) {
    rings = os::map_anonymous(room * sizeof(Ring));
    if (rings != nullptr) break;
  }
  if (rings == nullptr || !os::wipe_on_fork(page, page_bytes)) {
    if (rings != nullptr) os::unmap(rings, room * sizeof(Ring));
    os::unmap(page, page_bytes);
    return false;
  }
  forget_sharing();
  cookie = make_cookie();
  cookie_page = new (page) std::atomic<std::uint32_t>(cookie);
  ring_table.count.store(0, std::memory_order_relaxed);
  ring_table.rings.store(static_cast<Ring*>(rings), std::memory_order_relaxed);
  // Release: who sees the cookie sees the table.
  ring_table.cookie_word.store(cookie_page, std::memory_order_release);
  return true;
}

// Locked.
Ring* take_ring() noexcept {
  const std::uint32_t count = ring_table.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    Ring& ring = ring_table.ring(i);
    if (!ring.owned.load(std::memory_order_relaxed) &&
        !ring.abandoned.load(std::memory_order_relaxed) && ring.quiet()) {
      ring.adopt();
      return &ring;
    }
  }
  if (count >= room) return nullptr;
  Ring& ring = ring_table.ring(count);
  ring.begin(count, cookie);
  // Release: the ring is made before it is counted.
  ring_table.count.store(count + 1, std::memory_order_release);
  return &ring;
}

}  // namespace

Ring* attach_ring(Error* error) noexcept {
  if (Ring* ring = own_ring(); ring != nullptr) return ring;
  thread_slot.ring = nullptr;
  table_lock.lock();
  const bool made = make_table();
  if (!key_made) key_made = pthread_key_create(&exit_key, thread_exits) == 0;
  Ring* ring = ring_table.cookie() != 0 && key_made ? take_ring() : nullptr;
  table_lock.unlock();
  const TableHook hook = new_table_hook.load(std::memory_order_relaxed);
  if (made && hook != nullptr) hook();
  if (ring == nullptr) {
    *error = make_error(Code::no_memory, 0,
                        "This thread gets no ring: no address space is left for it, or %u threads "
                        "have one; its copies run inline.",
                        max_rings);
    return nullptr;
  }
  pthread_setspecific(exit_key, ring);
  thread_slot.ring = ring;
  thread_slot.shared = ring_is_shared(ring->index);
  return ring;
}

void detach_ring() noexcept {
  Ring* ring = own_ring();
  thread_slot.ring = nullptr;
  if (ring == nullptr) return;
  table_lock.lock();
  ring->owned.store(false, std::memory_order_relaxed);
  table_lock.unlock();
}

void on_new_table(TableHook hook) noexcept {
  new_table_hook.store(hook, std::memory_order_relaxed);
}

void lock_rings() noexcept {
  table_lock.lock();
}

void unlock_rings() noexcept {
  table_lock.unlock();
}

void rings_before_fork() noexcept {
  table_lock.lock();
  sharing_before_fork();
}

void rings_after_fork_parent() noexcept {
  table_lock.unlock();
}

void rings_after_fork_child() noexcept {
  cookie_page->store(cookie, std::memory_order_relaxed);
  if (!sharing_after_fork_child()) {
    // Without a cookie the rings are nobody's, as in a child by a bare clone.
    cookie_page->store(0, std::memory_order_relaxed);
    table_lock.unlock();
    return;
  }
  const std::uint32_t count = ring_table.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    Ring& ring = ring_table.ring(i);
    ring.completions.forget_descriptor();
    if (&ring == thread_slot.ring) continue;
    // Its thread is not here. Quiet as the gate left it, the ring can serve another.
    ring.publishing.store(false, std::memory_order_relaxed);
    ring.owned.store(false, std::memory_order_relaxed);
    if (!ring.quiet()) ring.abandoned.store(true, std::memory_order_relaxed);
  }
  table_lock.unlock();
}

}  // namespace haul
