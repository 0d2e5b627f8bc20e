// Looks at all rings, and sleeps on the first request that has not ended.
#include "mover/settle.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/machine/clock.hpp"
#include "base/machine/cpu.hpp"
#include "base/os/os.hpp"
#include "client/link_socket.hpp"
#include "execution/drive.hpp"
#include "gate/gate.hpp"
#include "mover/mover.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

constexpr unsigned spins = 2000;
constexpr std::uint64_t slice_ns = 5'000'000;
constexpr std::uint64_t submitters_patience_ns = 1'000'000'000;
// The time during which this process was stopped, or had no CPU, does not count as waiting.
constexpr std::uint64_t longest_step_ns = 100'000'000;

struct Look {
  Unsettled left;
  Ring* ring = nullptr;  // of the first
  std::uint64_t seq = 0;
  std::uint64_t sign = 0;  // changes as soon as anything makes progress
};

void add(Ring& ring, std::uint64_t seq, Look* look) noexcept {
  Job job;
  if (!ring.read(seq, &job)) return;
  const Tenancy tenancy = ring.tenancy(seq);
  std::uint64_t good = 0;
  const std::uint32_t open = tenancy.unreported(job.chunks);
  for (unsigned chunk = 0; chunk < job.chunks.count(); ++chunk)
    good += tenancy.visible_in_chunk(job.chunks, chunk, 0);
  look->sign = (look->sign * 31 + seq) * 31 + good * 2 + open;
  if (ring.ended(seq)) return;  // what was read may be torn
  if (look->left.requests++ == 0) {
    look->ring = &ring;
    look->seq = seq;
    look->left.ring = ring.index;
    look->left.service = job.service;
  }
  look->left.bytes += job.chunks.length - std::min<std::uint64_t>(good, job.chunks.length);
  look->left.whole_bytes += job.chunks.length;
}

Look look_around() noexcept {
  Look look;
  for_each_ring([&](Ring& ring) {
    if (ring.abandoned.load(std::memory_order_relaxed)) return;
    const std::uint64_t end = ring.next_seq();
    for (std::uint64_t seq = ring.first_unfinished(end); seq < end; ++seq) {
      if (!ring.ended(seq) && !ring.nobody_moves(seq)) add(ring, seq, &look);
    }
  });
  return look;
}

// A signal handler that is about to fork or exit may have interrupted its own thread between
// publishing a request, or saying that the mover is awake, and waking it: so the bells are rung
// again. No mover is made: making one takes a lock, and may wait for the program.
void ring_bells() noexcept {
  wake_sleeping_mover();
  os::futex_wake(&gate.asleep, 1);
  std::atomic<std::uint32_t>* const bell = gate.service_bell.load(std::memory_order_acquire);
  if (!thread_slot.busy || bell == nullptr) return;
  bell->store(1, std::memory_order_relaxed);  // so that the packet is sent in any case
  wake_service();
}

}  // namespace

Unsettled settle_all(std::uint64_t patience_ns) noexcept {
  bool rung = false;
  // Where the movers have retired, a request is carried out by its submitter alone: soon, or, if
  // that waits for the program (for its malloc, while making movers), not before this fork is over.
  const bool retired = gate.asleep.load(std::memory_order_relaxed) == mover_gone;
  if (retired) patience_ns = std::min(patience_ns, submitters_patience_ns);
  std::uint64_t sign = 0, waited_ns = 0, before = now_ns();
  for (;;) {
    Look look = look_around();
    if (!look.left) return look.left;
    if (!std::exchange(rung, true)) ring_bells();
    const std::uint64_t now = now_ns();
    waited_ns = look.sign != sign ? 0 : waited_ns + std::min(now - before, longest_step_ns);
    if (waited_ns >= patience_ns && look.sign == sign) {
      look.left.no_mover = retired;
      look.left.waited_ns = waited_ns;
      return look.left;
    }
    before = now;
    sign = look.sign;
    for (unsigned turn = 0; turn < spins && !look.ring->ended(look.seq); ++turn) {
      drive(*look.ring, look.seq);
      cpu_relax();
    }
    if (!look.ring->ended(look.seq)) look.ring->tenancy(look.seq).sleep(slice_ns);
  }
}

void tell_left(const char* who, const Unsettled& left) noexcept {
  const char* why =
      "its memory does not arrive (userfaultfd, FUSE, NFS) or a crash handler holds the mover";
  if (left.service) {
    why = "the node's service makes no progress with it (is it stopped?)";
  } else if (left.no_mover) {
    why = "its thread, which is making a mover for it, waits for the program";
  }
  log(LogLevel::warning,
      "%s leaves %u request%s with %llu of %llu bytes not copied, the first in ring %u, since %s; "
      "there was no progress for %llu ms (at most HAUL_MOVER_PATIENCE_MS).",
      who, left.requests, left.requests == 1 ? "" : "s",
      static_cast<unsigned long long>(left.bytes),
      static_cast<unsigned long long>(left.whole_bytes), left.ring, why,
      static_cast<unsigned long long>(left.waited_ns / 1'000'000));
}

}  // namespace haul
