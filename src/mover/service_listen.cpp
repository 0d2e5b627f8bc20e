// One packet after another.
#include "mover/service_listen.hpp"

#include <atomic>
#include <cerrno>

#include "base/os.hpp"
#include "base/socket.hpp"
#include "memory/arena.hpp"
#include "mover/gate.hpp"
#include "mover/grants.hpp"
#include "mover/recover.hpp"
#include "mover/service_channel.hpp"
#include "mover/service_talk.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constexpr std::uint64_t arena_patience_ns = 100'000'000, step_ns = 200'000,
                        parting_ns = 1'000'000'000;

constinit std::atomic<bool> arena_owed{false};

void signal_queue(std::uint32_t ring) noexcept {
  lock_rings();  // a ring that is being adopted closes its descriptor
  if (ring < ring_table.count.load(std::memory_order_acquire))
    ring_table.ring(ring).completions.signal();
  unlock_rings();
}

}  // namespace

void hand_arena_over() noexcept {
  const ArenaView arena = arena_view();
  wire::Arena message;
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

// Takes no lock that a
// thread may hold which waits for the service: the gate's, the link's and the channel's are held
// around a fork, whose copies are finished by the recovery that comes after this, if the service
// dies.
Error listen_to_service() noexcept {
  ServiceMessage message;
  std::size_t bytes = 0;
  Error last;
  for (;;) {
    const int ready = os::wait_readable(channel_fd(), -1);
    if (ready < 0 && ready != -EINTR) os::sleep_ns(step_ns);
    if (!channel_intact()) {
      // The program has closed our descriptor: the service reads that, and lets go in a moment.
      os::sleep_ns(parting_ns);
      return make_error(Code::closed, 0,
                        "The program has closed the descriptor of the link to the service.");
    }
    switch (receive_from_service(channel_fd(), &message, &bytes)) {
      case Received::closed: return last;
      case Received::trouble:
        // It may be amid a chunk of ours. It lets go when it reads that we have closed, and closes.
        os::shut_sending(channel_fd());
        os::sleep_ns(step_ns);
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
