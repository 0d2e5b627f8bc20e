#include "execution/drive.hpp"

#include <atomic>

#include "execution/channel.hpp"
#include "execution/own_rings.hpp"
#include "request/rights.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

// Relaxed: a caller that sees an older value is a mover's for that look, or drives beside one.
constinit std::atomic<bool> a_mover_is_awake{false};

bool read_driven(Ring& ring, std::uint64_t seq, Job* job) noexcept {
  return !ring.nobody_moves(seq) && ring.read(seq, job) && is_driven(*job);
}

// Gives the channel what it has room for, after it has been polled where `polls` says so, or where
// it is full. True: this thread has copied something for the engine.
bool give_to_channel(Ring& ring, const Job& job, bool polls) noexcept {
  ++thread_slot.carrying;  // before the turn: a handler may interrupt right after it
  os::compiler_barrier();
  bool staged = false;
  if (ChannelTurn turn(channel_of(ring, job)); turn) {
    if (polls || !turn->has_room()) turn->poll();
    const bool may = job.rights == nobodys || job.rights == rights_number();
    const Tenancy tenancy = ring.tenancy(job.seq);
    for (int chunk = 0; may && turn->has_room() && chunk >= 0;) {
      chunk = ring.claim(tenancy, job.chunks);
      if (chunk >= 0) turn->carry(ring, job, static_cast<unsigned>(chunk));
    }
    staged = turn.finish();
  }
  os::compiler_barrier();
  --thread_slot.carrying;
  return staged;
}

}  // namespace

void movers_drive(bool awake) noexcept {
  a_mover_is_awake.store(awake, std::memory_order_relaxed);
}

bool drive(Ring& ring, std::uint64_t seq) noexcept {
  Job job;
  if (a_mover_is_awake.load(std::memory_order_relaxed) || !read_driven(ring, seq, &job))
    return false;
  // Behind a fence it is the first one that has not ended which must go on, whoever looks at that.
  if (job.fence) {
    seq = ring.first_unfinished(seq);
    if (seq < job.seq && !read_driven(ring, seq, &job)) return false;
  }
  return give_to_channel(ring, job, true);
}

bool may_cost_a_copy(Ring& ring, std::uint64_t seq) noexcept {
  Job job;
  return read_driven(ring, seq, &job) && engine_at(job.engine).has_memory();
}

void drive_new(Ring& ring, const Job& job) noexcept {
  if (!job.fence && !a_mover_is_awake.load(std::memory_order_relaxed))
    give_to_channel(ring, job, false);
}

void begin_driven(Ring& ring, const Job& job) noexcept {
  ++thread_slot.carrying;  // before the claim: a handler may interrupt right after it
  os::compiler_barrier();
  const int first = ring.claim(ring.tenancy(job.seq), job.chunks, 1);
  drive_new(ring, job);
  if (first >= 0) run_here(ring, job, static_cast<unsigned>(first));
  os::compiler_barrier();
  --thread_slot.carrying;
}

void drive_all(Ring& ring, bool costly_ones) noexcept {
  if (a_mover_is_awake.load(std::memory_order_relaxed)) return;
  const std::uint64_t end = ring.next_seq();
  for (std::uint64_t seq = ring.first_unfinished(end); seq < end; ++seq)
    if (!ring.ended(seq) && (costly_ones || !may_cost_a_copy(ring, seq))) drive(ring, seq);
}

bool any_driven(Ring& ring) noexcept {
  if (a_mover_is_awake.load(std::memory_order_relaxed)) return false;
  const std::uint64_t end = ring.next_seq();
  Job job;
  for (std::uint64_t seq = ring.first_unfinished(end); seq < end; ++seq)
    if (!ring.ended(seq) && ring.read(seq, &job) && is_driven(job)) return true;
  return false;
}

}  // namespace haul
