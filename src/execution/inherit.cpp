// Which of it can be done again here, and doing it.
//
// In the child, requests below Ring::inherited_below are the parent's past: their claims are void,
// for the threads that made them are not here. Whatever is not reported may therefore be done by
// whoever looks at the request first (`adopting` admits one thread at a time), but only where doing
// it twice, once in each process, does no harm: in private memory whose sides do not overlap, or
// were not begun. A signal handler may fork amid this very code: then the frames below run on in
// the child of the child, and find `forks_survived` changed, or their chunk reported by somebody
// else, and touch nothing more.
#include "execution/inherit.hpp"

#include "base/clock.hpp"
#include "base/mappings.hpp"
#include "engine/engine.hpp"
#include "execution/own_rings.hpp"
#include "request/rings.hpp"

namespace haul {
namespace {

// Calls act(dst, src, length) for each piece of a request.
template <class Act>
void for_each_piece(Ring& ring, const Job& job, Act act) noexcept {
  if (job.segment_count == 0) return act(job.dst, job.src_or_pattern, job.chunks.length);
  const Segment* segment = ring.segments(job.segment_first);
  for (std::uint32_t i = 0; i < job.segment_count; ++i, ++segment) {
    const std::size_t end = i + 1 < job.segment_count ? segment[1].offset : job.chunks.length;
    act(segment->dst, segment->src, end - segment->offset);
  }
}

bool sides_overlap(Ring& ring, const Job& job) noexcept {
  bool found = false;
  if (job.operation == Operation::copy) {
    for_each_piece(ring, job, [&](std::uintptr_t dst, std::uintptr_t src, std::size_t length) {
      found = found || overlaps(dst, src, length);
    });
  }
  return found;
}

// Is some of the request's memory, or its notification word, a mapping that processes share? The
// parent writes it too, now or a while ago; or the source is another's by now.
bool touches_shared_memory(Ring& ring, const Job& job) noexcept {
  struct Search {
    Ring& ring;
    const Job& job;
    bool found;
  } search{ring, job, false};
  const auto look = [](std::uintptr_t begin, std::uintptr_t end, void* context) {
    Search& s = *static_cast<Search*>(context);
    const bool copy = s.job.operation == Operation::copy;
    const auto meets = [&](std::uintptr_t at, std::size_t length) {
      return at < end && begin < at + length;
    };
    for_each_piece(s.ring, s.job, [&](std::uintptr_t dst, std::uintptr_t src, std::size_t length) {
      if (meets(dst, length) || (copy && meets(src, length))) s.found = true;
    });
    const auto* notify = s.job.extras ? s.ring.extras(s.job.seq).notify : nullptr;
    if (notify != nullptr && meets(reinterpret_cast<std::uintptr_t>(notify), 8)) s.found = true;
  };
  return !os::for_each_shared_mapping(look, &search) || search.found;
}

// Whoever had claimed a chunk and not reported it is not here; so every such chunk is ours.
void finish(Ring& ring, const Job& job, std::uint64_t deadline_ns,
            std::uint32_t survived) noexcept {
  const Tenancy tenancy = ring.tenancy(job.seq);
  const bool begun = tenancy.unreported(job.chunks) != 0;
  const bool can =
      job.is_local() && !(begun && sides_overlap(ring, job)) && !touches_shared_memory(ring, job);
  for (unsigned chunk = 0; chunk < job.chunks.count(); ++chunk) {
    const std::uint32_t bit = std::uint32_t{1} << chunk;
    if ((tenancy.reported(job.chunks) & bit) != 0) continue;
    if (can && deadline_ns != UINT64_MAX && now_ns() >= deadline_ns) return;
    ring.claim(tenancy, job.chunks, bit);
    can ? resume_here(ring, job, chunk) : abandon_here(ring, job, chunk);
    if (forks_survived.load(std::memory_order_relaxed) != survived) return;
  }
  // The parent's last finisher was between its report and the end.
  bool failed = false;
  if (!ring.ended(job.seq) && tenancy.all_reported(job.chunks, &failed))
    end_for_the_dead(ring, job, failed || !can);
}

// Published here, after the fork, by a submit that began before it: no mover was told. Its chunks
// are claimed as ever.
void help_interrupted(Ring& ring, const Job& job) noexcept {
  const Tenancy tenancy = ring.tenancy(job.seq);
  const bool can = job.is_local();
  if (!can && !job.service) return;
  if (job.fence && ring.first_unfinished(job.seq) != job.seq) return;
  for (int chunk = ring.claim(tenancy, job.chunks); chunk >= 0;
       chunk = ring.claim(tenancy, job.chunks)) {
    if (can) {
      run_here(ring, job, static_cast<unsigned>(chunk));
    } else {
      abandon_here(ring, job, static_cast<unsigned>(chunk));
    }
  }
}

// What comes before a fenced request ends first. False: it has not.
bool earlier_ended(Ring& ring, const Job& job, std::uint64_t deadline_ns) noexcept {
  if (!job.fence) return true;
  for (std::uint64_t seq = ring.first_unfinished(job.seq); seq < job.seq; ++seq) {
    if (!ring.ended(seq)) tend_inherited(ring, seq, deadline_ns);
    if (!ring.ended(seq)) return false;
  }
  return true;
}

}  // namespace

void tend_inherited(Ring& ring, std::uint64_t seq, std::uint64_t deadline_ns) noexcept {
  Job job;
  if (!ring.nobody_moves(seq) || ring.ended(seq) || !ring.read(seq, &job)) return;
  // A handler that interrupts this thread amid a chunk must not wait for it, nor exit().
  ++thread_slot.carrying;
  os::compiler_barrier();
  if (seq >= ring.inherited_below.load(std::memory_order_relaxed)) {
    help_interrupted(ring, job);
  } else {
    const std::uint32_t survived = forks_survived.load(std::memory_order_relaxed);
    // One at a time. (Recursive for a fence's sake, on earlier requests, before it is taken.)
    if (earlier_ended(ring, job, deadline_ns) &&
        ring.adopting.exchange(1, std::memory_order_acquire) == 0) {
      if (!ring.ended(seq)) finish(ring, job, deadline_ns, survived);
      if (forks_survived.load(std::memory_order_relaxed) == survived)
        ring.adopting.store(0, std::memory_order_release);
    }
  }
  os::compiler_barrier();
  --thread_slot.carrying;
}

void tend_all_inherited(Ring& ring) noexcept {
  const std::uint64_t end = ring.inherited_below.load(std::memory_order_relaxed);
  for (std::uint64_t seq = end != 0 ? ring.first_unfinished(end) : 0; seq < end; ++seq) {
    if (!ring.ended(seq)) tend_inherited(ring, seq, UINT64_MAX);
  }
}

}  // namespace haul
