// Moving a ring from private memory to shared memory, and back in a child.
#include "request/sharing.hpp"

#include "base/os.hpp"
#include "base/sealed.hpp"
#include "completion/ledger.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constinit SharedTable own{};  // under the rings' lock, as is the next
constinit os::FileId own_id{};
constinit std::atomic<const Board*> board_now{nullptr};
constinit std::atomic<bool> shared_rings[max_rings];  // likewise; read without it

// What a child needs of its parent's rings, put aside before the fork: the parent goes on using
// them while the child comes to life.
constinit void* own_ring_copy = nullptr;  // of the forking thread's ring
constinit std::uint64_t tails[max_rings];

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
      own = SharedTable{fd, static_cast<Board*>(board)};
      own_id = os::file_id(fd);
      board_now.store(own.board, std::memory_order_release);
    }
  }
  *table = own;
  unlock_rings();
  return own.board != nullptr ? Code::ok : Code::no_memory;
}

namespace {

// Locked. Puts the ring's content into the table, and the table's pages in the ring's place.
bool move_in(Ring* ring) noexcept {
  // The program may have closed the descriptor, and opened a file of its own under the number.
  if (own.board == nullptr || os::file_id(own.fd) != own_id) return false;
  const std::size_t offset = ring_offset(ring->index);
  void* place = os::map_shared(nullptr, sizeof(Ring), own.fd, offset);
  if (place == nullptr) return false;
  copy_ring(place, ring);
  os::unmap(place, sizeof(Ring));
  if (os::map_shared(ring, sizeof(Ring), own.fd, offset) == nullptr) return false;
  // In between as well: then these pages are a file's, and whoever shares them is unknown.
  if (os::file_id(own.fd) == own_id) return true;
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
  if (!ring->quiet()) return false;
  // A signal handler on this thread must not count or copy between the copy and the switch.
  os::SignalMask saved;
  os::block_signals(&saved);
  lock_rings();
  const bool moved = move_in(ring);
  if (moved) {
    // Who counts itself in or out during the switch counts on one side of it only. All requests
    // have ended, so nobody is about to sleep.
    ring->forget_waiters();
    const std::uint32_t index = ring->index;
    shared_rings[index].store(true, std::memory_order_relaxed);
    // Release: the ring is there before the service is told of it.
    own.board->shared[index / 64].fetch_or(std::uint64_t{1} << index % 64,
                                           std::memory_order_release);
    thread_slot.shared = true;
  }
  unlock_rings();
  os::restore_signals(saved);
  return moved;
}

const Board* shared_board() noexcept {
  return board_now.load(std::memory_order_acquire);
}

bool ring_is_shared(std::uint32_t index) noexcept {
  return shared_rings[index].load(std::memory_order_relaxed);
}

void sharing_before_fork() noexcept {
  const std::uint32_t count = ring_table.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!ring_is_shared(i)) continue;
    Ring& ring = ring_table.ring(i);
    tails[i] = ring.next_seq();
    ring.import_failures();
    if (&ring != thread_slot.ring) continue;
    if (own_ring_copy == nullptr) own_ring_copy = os::map_anonymous(sizeof(Ring));
    if (own_ring_copy != nullptr) copy_ring(own_ring_copy, &ring);
  }
}

bool sharing_after_fork_child() noexcept {
  bool all_private = true;
  const std::uint32_t count = ring_table.count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!ring_is_shared(i)) continue;
    Ring& ring = ring_table.ring(i);
    if (!os::map_private_at(&ring, sizeof(Ring))) {
      all_private = false;
    } else if (&ring == thread_slot.ring && own_ring_copy != nullptr) {
      copy_ring(&ring, own_ring_copy);
      ring.forget_waiters();
    } else {
      ring.begin_ended(i, ring_table.cookie(), tails[i]);
      // (There was no memory for the copy.)
      if (&ring == thread_slot.ring) ring.owned.store(true, std::memory_order_relaxed);
    }
  }
  if (own.board != nullptr) os::unmap(own.board, sizeof(Board));
  if (own.fd >= 0 && os::file_id(own.fd) == own_id) os::close_fd(own.fd);
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
