// Finding the chunks that a dead service had claimed, and ending its requests.
//
// A chunk that is claimed and not reported was the dead service's, or is being moved by a waiter of
// this process that helps. Only the first kind may be done again. So helpers are kept off: a helper
// counts itself in (`helpers`) before it looks at `recovering`, and the recovery raises
// `recovering` before it looks at `helpers`, all sequentially consistent; hence one of them sees
// the other. Once `helpers` is 0, every claimed chunk is an orphan of the service. Chunks that
// nobody had claimed are then done as usual, with helpers.
#include "client/recover.hpp"

#include <algorithm>
#include <bit>

#include "base/sync/backoff.hpp"
#include "execution/help.hpp"
#include "execution/own_rings.hpp"
#include "request/rings.hpp"
#include "request/sharing.hpp"

namespace haul {
namespace {

// Calls act(job) for each unfinished request given to the service, oldest first.
template <class Act>
void for_each_unfinished(Ring& ring, Act act) noexcept {
  const std::uint64_t end = ring.next_seq();
  for (std::uint64_t seq = std::max(ring.first_unfinished(end),
                                    ring.inherited_below.load(std::memory_order_relaxed));
       seq < end; ++seq) {
    Job job;
    if (!ring.ended(seq) && ring.read(seq, &job) && job.service) act(job);
  }
}

// Finishes what the service had claimed and not reported. Helpers are kept off meanwhile, so every
// claimed chunk was the service's. A chunk is copied again from its last visible block on: the
// request has not ended, so its memory is still its own, and the service never gets sides that
// overlap.
void finish_orphans(Ring& ring) noexcept {
  // Sequentially consistent, both: pairs with HelpsService.
  ring.recovering.store(1, std::memory_order_seq_cst);
  for (Backoff backoff; ring.helpers.load(std::memory_order_seq_cst) != 0;) backoff.pause();
  for_each_unfinished(ring, [&](const Job& job) {
    std::uint32_t orphans = ring.tenancy(job.seq).unreported(job.chunks);
    for (; orphans != 0; orphans &= orphans - 1) {
      const auto chunk = static_cast<unsigned>(std::countr_zero(orphans));
      if (job.is_local()) {
        resume_here(ring, job, chunk);
      } else {
        abandon_here(ring, job, chunk);
      }
    }
    // The service may have died between its last report and the end of the request.
    bool failed = false;
    if (!ring.ended(job.seq) && ring.tenancy(job.seq).all_reported(job.chunks, &failed))
      end_for_the_dead(ring, job, failed);
  });
  ring.recovering.store(0, std::memory_order_seq_cst);
}

// Finishes what nobody had claimed.
void finish_rest(Ring& ring) noexcept {
  for_each_unfinished(ring, [&](const Job& job) {
    if (job.is_local()) {
      wait_for(ring, job.seq, no_deadline);
      return;
    }
    const Tenancy tenancy = ring.tenancy(job.seq);
    for (int chunk = ring.claim(tenancy, job.chunks); chunk >= 0;
         chunk = ring.claim(tenancy, job.chunks))
      abandon_here(ring, job, static_cast<unsigned>(chunk));
  });
}

}  // namespace

void finish_chunk(std::uint32_t ring_index, std::uint64_t seq, unsigned chunk) noexcept {
  if (ring_index >= ring_table.count.load(std::memory_order_acquire) || seq < Ring::first_seq)
    return;
  Ring& ring = ring_table.ring(ring_index);
  Job job;
  if (ring.ended(seq) || !ring.read(seq, &job) || !job.service || !job.is_local() ||
      chunk >= job.chunks.count() || (ring.tenancy(seq).unreported(job.chunks) >> chunk & 1) == 0) {
    return;
  }
  resume_here(ring, job, chunk);
}

void recover_from_service() noexcept {
  for_each_ring([](Ring& ring) {
    if (ring.abandoned.load(std::memory_order_relaxed)) return;
    finish_orphans(ring);
    finish_rest(ring);
    // For entries that the service posted before it died, without saying so.
    if (!ring_is_shared(ring.index)) return;
    lock_rings();  // rest and adoption close a ring's descriptor
    ring.completions.signal();
    unlock_rings();
  });
}

}  // namespace haul
