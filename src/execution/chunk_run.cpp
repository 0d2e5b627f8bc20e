// Pieces of a chunk, and what happens when the last one is done.
#include "execution/chunk_run.hpp"

#include <algorithm>

#include "completion/ledger.hpp"
#include "engine/registry.hpp"
#include "execution/counters.hpp"
#include "request/request.hpp"

namespace haul {
namespace {

constexpr std::size_t cpu_index = 0;  // the registry's fixed order

// The last finisher's duties: the notification word, then the queue, then the state (paper
// 004, 2.2: set after the data).
void complete(Ring& ring, const Job& job, bool failed, bool once = false) noexcept {
  Failure failure{Code::ok, job.chunks.length};
  if (failed) {
    counters.failed.fetch_add(1, std::memory_order_relaxed);
    ring.import_failure(job.seq, Code::io);
    if (!ledger_find(ring.index, job.seq, &failure)) failure = Failure{Code::io, 0};
  }
  if (job.extras) {
    const Extras& extras = ring.extras(job.seq);
    if (extras.notify != nullptr && !failed) {
      // Release: whoever sees the value sees the data.
      extras.notify->store(extras.notify_value, std::memory_order_release);
    }
    // (What a child inherited completes in the parent.)
    if (extras.post && job.seq >= ring.inherited_below.load(std::memory_order_relaxed)) {
      const Completion entry{Ticket::pending(ring.cookie, ring.index, job.seq),
                             extras.user_data,
                             failure.good_bytes,
                             failure.code,
                             extras.callback,
                             extras.context};
      const bool armed = once ? ring.completions.post_once(entry) : ring.completions.post(entry);
      if (armed) ring.completions.signal();
    }
  }
  ring.tenancy(job.seq).end(failure.code);
}

}  // namespace

ChunkRun::ChunkRun(Ring& ring, const Job& job, unsigned chunk) noexcept
    : ring_(&ring),
      job_(job),
      chunk_(chunk),
      engine_(job.engine),
      begin_(job.chunks.begin(chunk)),
      at_(begin_),
      end_(job.chunks.end(chunk)) {}

bool ChunkRun::next(Piece* piece) const noexcept {
  if (code_ != Code::ok || at_ >= end_) return false;
  const Tenancy tenancy = ring_->tenancy(job_.seq);
  piece->operation = job_.operation;
  piece->dst_affinity = job_.dst_affinity;
  piece->src_affinity = job_.src_affinity;
  piece->pattern_bytes = job_.pattern_bytes;
  piece->checked = job_.checked;
  piece->dst_space = job_.dst_space;
  piece->src_space = job_.src_space;
  piece->whole_bytes = job_.chunks.length;
  piece->watermark =
      Watermark{&tenancy.watermarks->word[chunk_], std::uint64_t{tenancy.generation} << 32,
                at_ - begin_, job_.chunks.block_log2};
  piece->length = end_ - at_;
  if (job_.segment_count == 0) {
    piece->dst = job_.dst + at_;
    piece->src = job_.operation == Operation::copy ? job_.src_or_pattern + at_ : 0;
  } else {
    const Segment* first = ring_->segments(job_.segment_first);
    const Segment* last = first + job_.segment_count;
    const Segment* after = std::upper_bound(
        first, last, at_, [](std::size_t at, const Segment& s) { return at < s.offset; });
    const Segment& segment = after[-1];
    const std::size_t segment_end = after == last ? job_.chunks.length : after->offset;
    piece->dst = segment.dst + (at_ - segment.offset);
    piece->src = segment.src + (at_ - segment.offset);
    piece->length = std::min(end_, segment_end) - at_;
  }
  if (job_.operation == Operation::fill) piece->pattern = pattern_at(job_.src_or_pattern, at_);
  return true;
}

bool ChunkRun::fall_back() noexcept {
  if (engine_ == cpu_index || job_.checked ||
      !cpu_engine().reaches(job_.operation, job_.dst_space, job_.src_space)) {
    return false;
  }
  engine_ = cpu_index;
  return true;
}

void ChunkRun::moved(const Outcome& outcome) noexcept {
  count_moved(engine_, outcome.good_bytes);
  at_ += outcome.good_bytes;
  if (outcome.code != Code::ok && !fall_back()) code_ = outcome.code;
}

void ChunkRun::engine_died() noexcept {
  if (!fall_back()) code_ = Code::io;
}

void ChunkRun::resume() noexcept {
  at_ = begin_ + ring_->tenancy(job_.seq).visible_in_chunk(job_.chunks, chunk_, 0);
}

void ChunkRun::abandon(Code code) noexcept {
  resume();
  code_ = code;
}

void ChunkRun::report() noexcept {
  const Tenancy tenancy = ring_->tenancy(job_.seq);
  // In a child that a signal handler forked amid this chunk, and then waited for the request:
  // somebody has done it again already.
  if (job_.seq < ring_->inherited_below.load(std::memory_order_relaxed) &&
      (tenancy.unreported(job_.chunks) >> chunk_ & 1) == 0)
    return;
  const bool failed = code_ != Code::ok;
  if (failed) ledger_record(ring_->index, job_.seq, code_, at_);
  const Tenancy::Finish finish = tenancy.finish(chunk_, failed, job_.chunks);
  if (finish.last) complete(*ring_, job_, finish.failed);
}

void end_for_the_dead(Ring& ring, const Job& job, bool failed) noexcept {
  complete(ring, job, failed, true);
}

namespace {

void run_to_the_end(ChunkRun& run) noexcept {
  if (!engine_at(run.engine()).facts().synchronous) run.engine_died();
  Piece piece;
  while (run.next(&piece)) {
    Outcome outcome;
    if (engine_at(run.engine()).submit(piece, 0, outcome) == Submitted::finished) {
      run.moved(outcome);
    } else {
      run.engine_died();
    }
  }
  run.report();
}

}  // namespace

void run_here(Ring& ring, const Job& job, unsigned chunk) noexcept {
  ChunkRun run(ring, job, chunk);
  run_to_the_end(run);
}

void refuse_here(Ring& ring, const Job& job, unsigned chunk) noexcept {
  ChunkRun run(ring, job, chunk);
  run.abandon(Code::permission);
  run.report();
}

void resume_here(Ring& ring, const Job& job, unsigned chunk) noexcept {
  ChunkRun run(ring, job, chunk);
  run.resume();
  run_to_the_end(run);
}

void abandon_here(Ring& ring, const Job& job, unsigned chunk) noexcept {
  ChunkRun run(ring, job, chunk);
  run.abandon(Code::io);
  run.report();
}

}  // namespace haul
