// Decides which inherited requests can be done again here, and does them.
//
// In the child, requests below Ring::inherited_below are the parent's past: their claims are void,
// since the threads that made them do not exist here. Any thread that looks at such a request may
// therefore do what is not reported (`adopting` admits one thread at a time), but only where doing
// it twice, once in each process, does no harm: in private memory, with sides that do not overlap
// or were not begun. A signal handler may fork in the middle of this very code: the functions below
// then run on in the child's child, find `forks_survived` changed, or their chunk reported by
// another thread, and touch nothing more.
#include "execution/inherit.hpp"

#include "base/machine/clock.hpp"
#include "base/os/pages/mappings.hpp"
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

// Is any of the request's memory, or its notification word, in a mapping that processes share? The
// parent writes it too, now or a while ago; or its source holds something else by now.
bool touches_shared_memory(Ring& ring, const Job& job) noexcept {
  struct Search {
    Ring& ring;
    const Job& job;
    bool found;
  } search{ring, job, false};
  const auto look = [](const os::Mapping& mapping, void* context) {
    if (!mapping.shared) return;
    Search& s = *static_cast<Search*>(context);
    const bool copy = s.job.operation == Operation::copy;
    const auto meets = [&](std::uintptr_t at, std::size_t length) {
      return at < mapping.end && mapping.begin < at + length;
    };
    for_each_piece(s.ring, s.job, [&](std::uintptr_t dst, std::uintptr_t src, std::size_t length) {
      if (meets(dst, length) || (copy && meets(src, length))) s.found = true;
    });
    const auto* notify = s.job.extras ? s.ring.extras(s.job.seq).notify : nullptr;
    if (notify != nullptr && meets(reinterpret_cast<std::uintptr_t>(notify), 8)) s.found = true;
  };
  return !os::for_each_mapping(look, &search) || search.found;
}

// A thread that had claimed a chunk and not reported it does not exist here, so every such chunk is
// ours.
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
  // All were reported: the parent's last finisher was between its report and the end.
  bool failed = false;
  if (!ring.ended(job.seq) && tenancy.all_reported(job.chunks, &failed))
    end_for_the_dead(ring, job, failed || !can);
}

// Published here, after the fork, by a submit that began before it: no mover was told. Its chunks
// are claimed as usual.
void help_interrupted(Ring& ring, const Job& job) noexcept {
  const Tenancy tenancy = ring.tenancy(job.seq);
  const bool can = job.is_local();
  if (!can && !job.service && !is_asynchronous(job.engine)) return;
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

// Ends what comes before a fenced request. False: it has not ended.
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
  // A handler that interrupts this thread during a chunk must not wait for that chunk, and neither
  // must exit().
  ++thread_slot.carrying;
  os::compiler_barrier();
  if (seq >= ring.inherited_below.load(std::memory_order_relaxed)) {
    help_interrupted(ring, job);
  } else {
    const std::uint32_t survived = forks_survived.load(std::memory_order_relaxed);
    // One thread at a time. (For a fence this recurses on earlier requests, before it is taken.)
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
