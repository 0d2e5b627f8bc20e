// Carries out one packet after another, until the service's socket reads "closed". Between packets
// the thread checks once a second that the link still has a purpose and its socket is still its
// own: the threads of the program may no longer use haul, the program may have closed the
// descriptor, the process may have changed its user. It then shuts its sending side and goes on
// listening: the service lets go of this process's memory before it closes, so only "closed" ends
// the link.
#include "client/listen.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/machine/clock.hpp"
#include "base/net/socket.hpp"
#include "base/os/os.hpp"
#include "base/os/rights.hpp"
#include "base/thread/own_threads.hpp"
#include "client/grants.hpp"
#include "client/link_socket.hpp"
#include "client/recover.hpp"
#include "client/talk.hpp"
#include "execution/help.hpp"
#include "gate/gate.hpp"
#include "memory/arena.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constexpr std::uint64_t arena_patience_ns = 100'000'000, listen_step_ns = 200'000,
                        listen_parting_ns = 1'000'000'000, listen_patience_ns = 1'000'000'000;
constexpr int look_ms = 1000;

constinit std::atomic<bool> arena_owed{false};

void signal_queue(std::uint32_t ring) noexcept {
  lock_rings();  // adopting a ring closes its descriptor
  if (ring < ring_table.count.load(std::memory_order_acquire))
    ring_table.ring(ring).completions.signal();
  unlock_rings();
}

// No thread submits, and what was granted is of use to others only while this process lives, which
// this very thread must not prolong.
bool nobody_needs_service() noexcept {
  return !any_ring_owned() && (!has_grants() || os::only_own_threads());
}

}  // namespace

void hand_arena_over() noexcept {
  const ArenaView arena = arena_view();
  wire::ArenaHandover message;
  message.base = arena.base;
  message.bytes = arena.bytes;
  if (arena.fd < 0) return;
  arena_owed.store(
      tell_service(&message, sizeof message, arena_patience_ns, &arena.fd, 1) == Code::timed_out,
      std::memory_order_relaxed);
}

bool arena_is_owed() noexcept {
  return arena_owed.load(std::memory_order_relaxed);
}

// Holds no lock for longer than a few instructions: a fork waits for the service's requests, and,
// if the service dies, for the recovery that follows this function.
Error listen_to_service(void (*use)(), bool* let_go) noexcept {
  ServiceMessage message;
  std::size_t bytes = 0;
  Error last;
  bool was_idle = false, parting = false;
  std::uint64_t parted_ns = 0;
  *let_go = true;
  const os::Rights rights = os::rights_of_this_thread();
  const std::uint64_t begun_ns = now_ns();
  for (bool in_use = false;;) {
    if (!in_use && (bindings_are_known() || now_ns() - begun_ns >= listen_patience_ns)) {
      in_use = true;
      use();
    }
    // If the program closes a descriptor while this waits for it, the wait does not end, so this
    // looks now and then. (Never wait for -1, which poll() ignores in silence.)
    const int waited = link_socket_fd();
    const int ready = waited >= 0 ? os::wait_readable(waited, look_ms) : 0;
    if (ready < 0 && ready != -EINTR) os::sleep_ns(listen_step_ns);
    if (ready == 0 && !parting && nobody_needs_service()) {
      // Idle twice in a row: a thread that copies and ends may be followed by another.
      parting = was_idle;
      was_idle = true;
      if (parting) {
        parted_ns = now_ns();
        os::shut_sending(link_socket_fd());  // the service lets go, and closes
        last = make_error(Code::closed, 0,
                          "No thread of this process uses haul any more, so it has left the node's "
                          "service; the next that copies attaches it again.");
      }
    } else if (parting && now_ns() - parted_ns >= mover_patience_ns() && os::only_own_threads()) {
      // The service is stopped, and no thread is left whose memory it could still touch
      // unexpectedly.
      *let_go = false;
      return last;
    } else {
      was_idle = false;
    }
    if (link_socket_fd() < 0) {
      // The program has closed our descriptor: the service reads that, and lets go in a moment.
      os::sleep_ns(listen_parting_ns);
      return make_error(Code::closed, 0,
                        "The program has closed the descriptor of the link to the service.");
    }
    // (Changing the user of all threads interrupts the wait.)
    if (!parting && !std::ranges::equal(os::rights_of_this_thread().user, rights.user)) {
      parting = true;
      parted_ns = now_ns();
      last = make_error(Code::permission, 0,
                        "This process has changed its user, so it left the service of the former "
                        "one.");
      os::shut_sending(link_socket_fd());
    }
    switch (receive_from_service(link_socket_fd(), &message, &bytes)) {
      case Received::closed: return last;
      case Received::trouble:
        // The service may be working on a chunk of ours. It lets go when it reads that we have
        // closed, and then closes.
        os::shut_sending(link_socket_fd());
        os::sleep_ns(listen_step_ns);
        continue;
      case Received::nothing: continue;
      case Received::message: break;
    }
    wire::Bound bound;
    wire::Withdrawn withdrawn;
    wire::Reap reap;
    wire::Refused refused;
    wire::ArenaKnown arena;
    wire::Distance distance;
    wire::Yours yours;
    if (read_as(message, bytes, &arena)) {
      set_service_arena(arena.base, arena.bytes);
    } else if (read_as(message, bytes, &distance)) {
      set_service_round_trip(2.0 * distance.line_ns);
    } else if (read_as(message, bytes, &bound)) {
      answer_bound(bound);
    } else if (read_as(message, bytes, &withdrawn)) {
      answer_withdrawn(withdrawn);
    } else if (read_as(message, bytes, &reap)) {
      signal_queue(reap.ring);
    } else if (read_as(message, bytes, &yours)) {
      if (static_cast<Code>(yours.code) == Code::permission) forget_kernel_reach();
      finish_chunk(yours.ring, yours.seq, yours.chunk);
    } else if (read_as(message, bytes, &refused)) {
      last = error_of(refused);
    }
  }
}

}  // namespace haul
