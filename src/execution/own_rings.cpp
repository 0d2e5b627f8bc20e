// This process's rings as an Origin: nobody hostile writes there, so what the claim pins is read in
// place, and failures go to the ledger.
#include "execution/own_rings.hpp"

#include "execution/counters.hpp"

namespace haul {
namespace {

class OwnRing {
 public:
  // for_the_dead: the worker that was about to complete the request has died in the middle of that.
  explicit OwnRing(Ring& ring, bool for_the_dead = false) noexcept
      : ring_(ring), for_the_dead_(for_the_dead) {}

  Tenancy tenancy(const Job& job) const noexcept { return ring_.tenancy(job.seq); }
  Watermark watermark(const ChunkRun& run) const noexcept {
    return run.watermark(tenancy(run.job));
  }

  bool stretch(const Job& job, std::size_t at, Stretch* stretch) const noexcept {
    const auto plainly = [](auto word) { return word; };
    return stretch_at(ring_, job, at, plainly, stretch);
  }

  void note_failure(const ChunkRun& run) const noexcept {
    ledger_record(ring_.index, run.job.seq, run.code, run.at);
  }
  void give_up() const noexcept {}  // never: a tenancy's attempts are not bounded here

  Failure failure_of(const Job& job) const noexcept {
    counters.failed.fetch_add(1, std::memory_order_relaxed);
    ring_.import_failure(job.seq, Code::io);
    Failure failure;
    return ledger_find(ring_.index, job.seq, &failure) ? failure : Failure{Code::io, 0};
  }

  const Extras& extras(const Job& job) const noexcept { return ring_.extras(job.seq); }

  bool notify(const Job&, const Extras& extras, Failure*) const noexcept {
    extras.notify->store(extras.notify_value, std::memory_order_release);
    return true;
  }

  Ticket ticket(const Job& job, const Failure&) const noexcept {
    return Ticket::pending(ring_.cookie, ring_.index, job.seq);
  }

  void post(const Job& job, const Completion& entry) const noexcept {
    // An inherited request completes in the parent.
    if (job.seq < ring_.inherited_below.load(std::memory_order_relaxed)) return;
    const bool armed =
        for_the_dead_ ? ring_.completions.post_once(entry) : ring_.completions.post(entry);
    if (armed) ring_.completions.signal();
  }

  void end(const Job& job, const Failure& failure) const noexcept {
    tenancy(job).end(failure.code);
  }

 private:
  Ring& ring_;
  bool for_the_dead_;
};

void fail(Ring& ring, const Job& job, unsigned chunk, Code code) noexcept {
  ChunkRun run(job, chunk);
  run.abandon(ring.tenancy(job.seq), code);
  report_chunk(ring, run);
}

}  // namespace

bool next_piece(Ring& ring, const ChunkRun& run, Piece* piece) noexcept {
  OwnRing origin(ring);
  return next(origin, run, piece);
}

void report_chunk(Ring& ring, const ChunkRun& run) noexcept {
  OwnRing origin(ring);
  // In a child that a signal handler forked during this chunk, and in which it then waited for the
  // request: the chunk has been done again already.
  if (run.job.seq < ring.inherited_below.load(std::memory_order_relaxed) &&
      (origin.tenancy(run.job).unreported(run.job.chunks) >> run.chunk & 1) == 0)
    return;
  report(origin, run);
}

void finish_here(Ring& ring, ChunkRun& run) noexcept {
  OwnRing origin(ring);
  move_here(origin, run);
  report_chunk(ring, run);
}

void run_here(Ring& ring, const Job& job, unsigned chunk) noexcept {
  ChunkRun run(job, chunk);
  finish_here(ring, run);
}

void refuse_here(Ring& ring, const Job& job, unsigned chunk) noexcept {
  fail(ring, job, chunk, Code::permission);
}

void resume_here(Ring& ring, const Job& job, unsigned chunk) noexcept {
  ChunkRun run(job, chunk);
  run.resume(ring.tenancy(job.seq));
  finish_here(ring, run);
}

void abandon_here(Ring& ring, const Job& job, unsigned chunk) noexcept {
  fail(ring, job, chunk, Code::io);
}

void end_for_the_dead(Ring& ring, const Job& job, bool failed) noexcept {
  OwnRing origin(ring, true);
  complete(origin, job, failed);
}

}  // namespace haul
