// Moving a ring from private memory to shared memory, and back in a child.
//
// A ring moves at its own address: its content is copied to its place in the table's memfd, which
// is then mapped over the private pages, so that pointers and tickets stay good. The owner does it
// while the ring is quiet, under the rings' lock; threads that test its tickets meanwhile read the
// same words from either memory. The service looks at a ring from the moment its bit is set in the
// board, and no longer once it is cleared. After a fork the table is the parent's: the child maps
// private memory over every shared ring before any of its threads can publish there.
#include "request/sharing.hpp"

#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/thread/unforked.hpp"
#include "completion/ledger.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constinit SharedTable own{};  // under the rings' lock
constinit std::atomic<const Board*> board_now{nullptr};
constinit std::atomic<bool> shared_rings[max_shared_rings];  // likewise, but read without it

// What a child needs of its parent's rings; the forking thread copies it before the fork, since the
// parent goes on using its rings while the child comes to life.
struct Past {
  std::uint64_t tail;
  Ring::Unfinished unfinished;
};
struct Stash {
  alignas(4096) unsigned char own_ring[sizeof(Ring)];
  Past pasts[max_shared_rings];
};
constinit thread_local Stash* stash = nullptr;

void copy_ring(void* to, const void* from) noexcept {
  __builtin_memcpy(to, from, sizeof(Ring));
}

}  // namespace

Code make_shared_table(SharedTable* table, Error* error) noexcept {
  lock_rings();
  if (own.board == nullptr) {
    const int fd = os::make_sealed("haul-rings", shared_table_bytes);
    void* board = fd >= 0 ? os::map_shared(nullptr, sizeof(Board), fd, 0) : nullptr;
    if (board == nullptr) {
      os::close_fd(fd);
      *error = make_error(Code::no_memory, fd < 0 ? -fd : 0,
                          "The rings cannot be shared with the service (%s); raise ulimit -n or "
                          "free memory.",
                          fd < 0 ? describe_errno(-fd) : "no memory");
    } else {
      own = SharedTable{os::Descriptor::of(fd), static_cast<Board*>(board)};
      board_now.store(own.board, std::memory_order_release);
    }
  }
  *table = own;
  unlock_rings();
  if (table->board == nullptr) return Code::no_memory;
  if (table->file.intact()) return Code::ok;
  *error = make_error(Code::closed, 0,
                      "The program has closed descriptor %d, haul's rings, so no service can be "
                      "attached to any more; close only descriptors of your own.",
                      table->file.number());
  return Code::closed;
}

namespace {

// Locked. Puts the ring's content into the table, and the table's pages in the ring's place.
bool move_in(Ring* ring) noexcept {
  // The program may have closed the descriptor, and opened a file of its own under the number.
  const int fd = own.file.get();
  if (own.board == nullptr || fd < 0) return false;
  const std::size_t offset = ring_offset(ring->index);
  void* place = os::map_shared(nullptr, sizeof(Ring), fd, offset);
  if (place == nullptr) return false;
  copy_ring(place, ring);
  os::unmap(place, sizeof(Ring));
  if (os::map_shared(ring, sizeof(Ring), fd, offset) == nullptr) return false;
  // The program may have done so in between as well: these pages are then another file's, and
  // nobody knows who shares them.
  if (own.file.intact()) return true;
  Ring* const back = static_cast<Ring*>(os::map_anonymous(sizeof(Ring)));
  if (back != nullptr) {
    copy_ring(back, ring);
    if (os::map_private_at(ring, sizeof(Ring))) copy_ring(ring, back);
    os::unmap(back, sizeof(Ring));
  }
  return false;
}

}  // namespace

bool share_own_ring() noexcept {
  Ring* ring = own_ring();
  if (ring == nullptr) return false;
  if (thread_slot.shared) return true;
  if (ring->index >= max_shared_rings || !ring->quiet()) return false;
  // With signals blocked: a handler on this thread must not count or copy anything between the copy
  // and the switch.
  lock_rings();
  const Unforked unforked;
  const bool moved = unforked && move_in(ring);
  if (moved) {
    // A thread that counts itself in or out during the switch is counted in one of the memories
    // only. All requests have ended, so no thread is about to sleep.
    ring->forget_waiters();
    const std::uint32_t index = ring->index;
    shared_rings[index].store(true, std::memory_order_relaxed);
    // Release: the ring is in place before the service is told of it.
    own.board->shared[index / 64].fetch_or(std::uint64_t{1} << index % 64,
                                           std::memory_order_release);
    thread_slot.shared = true;
  }
  unlock_rings();
  return moved;
}

bool has_table_descriptor() noexcept {
  lock_rings();
  const bool has = own.board == nullptr || own.file.intact();
  unlock_rings();
  return has;
}

const Board* shared_board() noexcept {
  return board_now.load(std::memory_order_acquire);
}

bool ring_is_shared(std::uint32_t index) noexcept {
  return index < max_shared_rings && shared_rings[index].load(std::memory_order_relaxed);
}

void show_shared_ring(std::uint32_t index, bool in_use) noexcept {
  if (own.board == nullptr || !ring_is_shared(index)) return;
  const std::uint64_t bit = std::uint64_t{1} << index % 64;
  std::atomic<std::uint64_t>& word = own.board->shared[index / 64];
  // Release: what the ring holds comes first.
  if (in_use) {
    word.fetch_or(bit, std::memory_order_release);
  } else {
    word.fetch_and(~bit, std::memory_order_release);
  }
}

void remove_shared_pages(std::uint32_t index, std::size_t bytes) noexcept {
  // Where the mapping is locked, the descriptor is used. If both are refused, the pages stay as
  // they are.
  if (os::remove_pages(&ring_table.ring(index), bytes)) return;
  if (const int fd = own.file.get(); fd >= 0) os::punch_hole(fd, ring_offset(index), bytes);
}

void sharing_before_fork() noexcept {
  if (shared_board() == nullptr) return;
  if (stash == nullptr) stash = static_cast<Stash*>(os::map_anonymous(sizeof(Stash)));
  if (stash == nullptr) return;
  for (std::uint32_t i = 0; i < max_shared_rings; ++i) {
    if (!ring_is_shared(i)) continue;
    Ring& ring = ring_table.ring(i);
    stash->pasts[i] = Past{ring.next_seq(), {}};
    if (!rings_in_use.has(i)) continue;
    ring.import_failures();
    stash->pasts[i].unfinished = ring.unfinished();
    if (&ring == thread_slot.ring) copy_ring(stash->own_ring, &ring);
  }
}

void sharing_after_fork_parent() noexcept {
  if (stash != nullptr) os::unmap(stash, sizeof(Stash));
  stash = nullptr;
}

bool sharing_after_fork_child() noexcept {
  bool all_private = true;
  for (std::uint32_t i = 0; i < max_shared_rings; ++i) {
    if (!ring_is_shared(i)) continue;
    Ring& ring = ring_table.ring(i);
    if (stash == nullptr || !os::map_private_at(&ring, sizeof(Ring))) {
      all_private = false;
    } else if (&ring == thread_slot.ring) {
      copy_ring(&ring, stash->own_ring);
      ring.forget_waiters();
    } else if (!rings_in_use.has(i)) {
      ring.begin_at_rest(i, ring_table.cookie(), stash->pasts[i].tail);
    } else {
      const Past& past = stash->pasts[i];
      ring.begin_ended(i, ring_table.cookie(), past.tail, past.unfinished);
    }
  }
  sharing_after_fork_parent();
  if (own.board != nullptr) {
    // A call that a signal handler's fork has interrupted may look at it once more: it then reads
    // zeros, which mean awake.
    if (!os::map_private_at(own.board, sizeof(Board))) os::unmap(own.board, sizeof(Board));
  }
  own.file.close();
  forget_sharing();
  return all_private;
}

void forget_sharing() noexcept {
  own = SharedTable{};
  board_now.store(nullptr, std::memory_order_relaxed);
  for (std::atomic<bool>& shared : shared_rings) shared.store(false, std::memory_order_relaxed);
  thread_slot.shared = false;
}

}  // namespace haul
