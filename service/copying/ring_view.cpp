// The checks on what a process has written into its rings.
#include "service/copying/ring_view.hpp"

#include <algorithm>
#include <cstddef>

namespace haul::service {
namespace {

constexpr std::size_t longest_request_bytes = std::size_t{1} << 47;
constexpr std::uint32_t smallest_block_log2 = 6, largest_block_log2 = 20;

bool same(const Chunks& a, const Chunks& b) {
  return a.length == b.length && a.unit == b.unit && a.full == b.full && a.taper == b.taper &&
         a.block_log2 == b.block_log2;
}

// Do the chunks follow each other from 0 to the length? (Where the parts exceed the length, begin()
// wraps around.)
bool sound(const Chunks& chunks) {
  if (chunks.full > Chunks::max_count || chunks.taper > Chunks::max_taper ||
      chunks.count() > Chunks::max_count || chunks.block_log2 < smallest_block_log2 ||
      chunks.block_log2 > largest_block_log2 || chunks.length >= longest_request_bytes ||
      (chunks.count() > 1 && chunks.unit > chunks.length))
    return false;
  std::size_t begin = 0;
  for (unsigned chunk = 0; chunk < chunks.count(); ++chunk) {
    const std::size_t end = chunks.end(chunk);
    if (end < begin || end > chunks.length) return false;
    begin = end;
  }
  return begin == chunks.length;
}

}  // namespace

const char* flaw_of(const Job& job, Chunks* checked) {
  if (!same(job.chunks, *checked)) {
    if (!sound(job.chunks)) return "chunks that do not make up its length";
    *checked = job.chunks;
  }
  if (job.dst_affinity > Affinity::neutral || job.src_affinity > Affinity::neutral)
    return "an affinity that does not exist";
  if (job.operation == Operation::fill && job.pattern_bytes != 1 && job.pattern_bytes != 2 &&
      job.pattern_bytes != 4 && job.pattern_bytes != 8)
    return "a pattern of a length that does not exist";
  if (job.segment_count != 0 && (job.segment_first >= Ring::segment_slots ||
                                 job.segment_count > Ring::segment_slots - job.segment_first))
    return "segments outside its ring";
  return nullptr;
}

bool fence_open(const Ring& ring, RingState& state, std::uint64_t seq) {
  // Whatever is a whole ring older has ended, else its slot would not have been used again.
  std::uint64_t at = std::max(state.ended_below, seq - std::min(seq, Ring::slots));
  while (at < seq && ended(ring, at)) ++at;
  state.ended_below = std::max(state.ended_below, at);
  return at >= seq;
}

Extras read_extras(const Ring& ring, std::uint64_t seq) {
  static_assert(offsetof(Extras, notify) == 0 && offsetof(Extras, notify_value) == 8 &&
                offsetof(Extras, user_data) == 16 && offsetof(Extras, callback) == 24 &&
                offsetof(Extras, context) == 32 && offsetof(Extras, post) == 40);
  // As words: a bool that is neither 0 nor 1 must not be read as one.
  const auto* words = reinterpret_cast<const std::uint64_t*>(&ring.extras(seq));
  const auto word = [&](unsigned i) { return __atomic_load_n(words + i, __ATOMIC_RELAXED); };
  return Extras{reinterpret_cast<std::atomic<std::uint64_t>*>(word(0)),
                word(1),
                word(2),
                reinterpret_cast<CompletionCallback>(word(3)),
                reinterpret_cast<void*>(word(4)),
                (word(5) & 0xff) != 0};
}

void leave_failure(const Tenancy& tenancy, Code code, std::uint64_t good) {
  Claims& claims = *tenancy.claims;
  const std::uint64_t generation = std::uint64_t{tenancy.generation} << 32;
  const bool known = claims.failure.load(std::memory_order_relaxed) >> 32 == tenancy.generation;
  if (known && claims.failure_good.load(std::memory_order_relaxed) <= good) return;
  claims.failure_good.store(good, std::memory_order_relaxed);
  // Release: the bytes before it. Pairs with Ring::import_failure().
  claims.failure.store(generation | static_cast<std::uint32_t>(-static_cast<std::int32_t>(code)),
                       std::memory_order_release);
}

Failure read_failure(const Tenancy& tenancy) {
  const Claims& claims = *tenancy.claims;
  const std::uint64_t word = claims.failure.load(std::memory_order_acquire);
  const auto number = static_cast<std::uint32_t>(word);
  constexpr auto last = static_cast<std::uint32_t>(-static_cast<std::int32_t>(Code::closed));
  const bool there = word >> 32 == tenancy.generation && number != 0 && number <= last;
  if (!there) return Failure{Code::io, 0};
  return Failure{static_cast<Code>(-static_cast<std::int32_t>(number)),
                 claims.failure_good.load(std::memory_order_relaxed)};
}

}  // namespace haul::service
