// The rounds of a mover.
#include "mover/loop.hpp"

#include <algorithm>

#include "engine/registry.hpp"
#include "mover/counters.hpp"

namespace haul {

void MoverLoop::begin(bool at_tails) noexcept {
  in_flight_ = 0;
  for (Flight& flight : flights_) flight.used = false;
  const std::uint32_t count = ring_table.count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < max_rings; ++i)
    cursor_[i] = at_tails && i < count ? ring_table.ring(i).next_seq() : 0;
}

bool MoverLoop::round() noexcept {
  bool busy = in_flight_ != 0 && poll_flights();
  const std::uint32_t count = ring_table.count.load(std::memory_order_acquire);
  for (std::uint32_t i = 0; i < count; ++i) busy |= visit(i, ring_table.ring(i));
  return busy;
}

bool MoverLoop::visit(std::uint32_t index, Ring& ring) noexcept {
  if (cursor_[index] == 0) cursor_[index] = Ring::first_seq;
  for (;;) {
    const std::uint64_t seq = cursor_[index];
    const std::uint64_t published = ring.published_seq(seq);
    if (published < seq) return false;
    if (published > seq) {
      // That tenancy is over; helpers were faster. So is every one whose slot has been used again.
      cursor_[index] = std::max(seq + 1, published - Ring::slots + 1);
      continue;
    }
    Job job;
    if (!ring.read(seq, &job)) continue;
    const Tenancy tenancy = ring.tenancy(seq);
    if (job.service) {  // not ours
      ++cursor_[index];
      continue;
    }
    if (!tenancy.claimable(job.chunks)) {
      ++cursor_[index];
      continue;
    }
    if (ring.abandoned.load(std::memory_order_relaxed)) return false;
    // Held back: nobody rings the bell when the fence opens, so the mover must not sleep over it.
    if (job.fence && ring.first_unfinished(seq) != seq) return true;
    const bool here = engine_at(job.engine).facts().synchronous;
    if (!here && !drives_devices_) return false;
    Flight* flight = here ? nullptr : free_flight();
    if (!here && flight == nullptr) return true;
    const int chunk = tenancy.claim(job.chunks);
    if (chunk < 0) continue;
    // Written before the request was published; so it is dirty in the owner's cache.
    drift.sample(ring.publishing);
    count_moved_chunk();
    if (here) {
      run_here(ring, job, static_cast<unsigned>(chunk));
    } else {
      flight->used = true;
      flight->run = ChunkRun(ring, job, static_cast<unsigned>(chunk));
      ++in_flight_;
      proceed(*flight);
    }
    return true;
  }
}

void MoverLoop::proceed(Flight& flight) noexcept {
  Piece piece;
  while (flight.run.next(&piece)) {
    Outcome outcome;
    const auto tag = static_cast<std::uint64_t>(&flight - flights_);
    switch (engine_at(flight.run.engine()).submit(piece, tag, outcome)) {
      case Submitted::finished: flight.run.moved(outcome); break;
      case Submitted::accepted: return;
      case Submitted::full:
        // Its queue is shorter than ours: this mover's other flights hold it, so their end makes
        // room.
        poll_flights();
        break;
      case Submitted::dead: flight.run.engine_died(); break;
    }
  }
  flight.run.report();
  flight.used = false;
  --in_flight_;
}

bool MoverLoop::poll_flights() noexcept {
  Finished finished[max_flights];
  for (std::size_t e = 0; e < engine_count(); ++e) {
    Engine& engine = engine_at(e);
    if (engine.facts().synchronous) continue;
    const std::size_t count = engine.poll(finished, max_flights);
    for (std::size_t i = 0; i < count; ++i) {
      Flight& flight = flights_[finished[i].tag];
      flight.run.moved(finished[i].outcome);
      proceed(flight);
    }
  }
  return true;
}

MoverLoop::Flight* MoverLoop::free_flight() noexcept {
  for (Flight& flight : flights_) {
    if (!flight.used) return &flight;
  }
  return nullptr;
}

}  // namespace haul
