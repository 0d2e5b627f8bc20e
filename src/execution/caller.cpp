// A request on the stack of the thread that asked, as an Origin: one chunk, which no other thread
// sees.
#include "execution/caller.hpp"

#include "execution/counters.hpp"
#include "execution/execution.hpp"
#include "execution/help.hpp"

namespace haul {
namespace {

class InlineRequest {
 public:
  InlineRequest(const Request& request, Ring* ring) noexcept
      : request_(request), ring_(ring), walk_(request) {}

  // `at` only grows.
  bool stretch(const Job&, std::size_t at, Stretch* stretch) noexcept {
    while (at - segment_.offset >= length_) {
      if (!walk_.next(&segment_, &length_)) return false;
    }
    const std::size_t skip = at - segment_.offset;
    *stretch = Stretch{segment_.dst + skip, segment_.src + skip, length_ - skip, skip};
    return true;
  }
  Watermark watermark(const ChunkRun&) const noexcept { return {}; }

  Failure run(const Job& job) noexcept {
    ChunkRun run(job, 0);
    move_here(*this, run);
    outcome_ = Failure{run.code, run.at};
    complete(*this, job, run.code != Code::ok);
    return outcome_;
  }

  Failure failure_of(const Job&) const noexcept {
    counters.failed.fetch_add(1, std::memory_order_relaxed);
    return outcome_;
  }
  Extras extras(const Job&) const noexcept { return extras_of(request_); }
  bool notify(const Job&, const Extras& extras, Failure*) const noexcept {
    extras.notify->store(extras.notify_value, std::memory_order_release);
    return true;
  }
  Ticket ticket(const Job&, const Failure& failure) const noexcept {
    return Ticket::decided(failure.code, failure.good_bytes);
  }
  void post(const Job&, const Completion& entry) const noexcept {
    if (ring_->completions.post(entry)) ring_->completions.signal();
  }
  void end(const Job&, const Failure&) const noexcept {}

 private:
  const Request& request_;
  Ring* ring_;
  SegmentWalk walk_;
  Segment segment_;
  std::size_t length_ = 0;  // of the segment
  Failure outcome_;
};

}  // namespace

void move_plain(Operation operation, std::uintptr_t dst, std::uint64_t src_or_pattern,
                unsigned pattern_bytes, std::size_t length) noexcept {
  Piece piece;
  piece.operation = operation;
  piece.pattern_bytes = static_cast<std::uint8_t>(pattern_bytes);
  piece.dst = dst;
  (operation == Operation::copy ? piece.src : piece.pattern) = src_or_pattern;
  piece.length = length;
  Outcome outcome;
  cpu_engine().submit(piece, 0, outcome);
}

Ticket run_inline(const Request& request, std::size_t engine, Ring* ring) noexcept {
  if (request.fence && ring != nullptr) drain(*ring, ring->next_seq());
  Job job = job_of(request);
  job.engine =
      engine_at(engine).facts().synchronous ? static_cast<std::uint8_t>(engine) : cpu_index;
  job.chunks = Chunks::single(request.length, job.chunks.block_log2);
  job.extras = request.notify != nullptr || request.complete;
  const Failure outcome = InlineRequest(request, ring).run(job);
  return Ticket::decided(outcome.code, outcome.good_bytes);
}

}  // namespace haul
