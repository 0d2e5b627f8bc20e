#include "preload/mem/choice.hpp"

#include <atomic>
#include <bit>

namespace haul::preload {
namespace {

constexpr int not_fixed = -1;
constinit std::atomic<int> fixed{not_fixed};
constinit std::atomic<bool> must_block{false};

// Memory that is there moves as fast as the memory goes, so two threads gain only where it is
// large; below this it is libc's.
constexpr std::size_t shared_from_bytes = std::size_t{4} << 20;

// Making a mover takes half a millisecond, so a program that copies little gets none.
constexpr std::uint64_t trials_after_ns = 10'000'000;

// A deferred call whose bytes are used sooner than those of most can cost several others, so it is
// not tried before there were so many of its kind.
constexpr std::uint64_t deferred_after_calls = 12;

// Is this 1, 2^log2, 2^(2 log2), ...? Sharing is tried at powers of four and once in 256. libc's
// way with missing pages, which can cost several times the others, is tried at powers of eight,
// from 64 on.
constexpr bool is_power(std::uint64_t calls, int log2) noexcept {
  return std::has_single_bit(calls) && std::countr_zero(calls) % log2 == 0;
}

std::uint64_t recent(CallClass& kind, Way way) noexcept {
  return kind.tally(way).recent_ns_per_mib.load(std::memory_order_relaxed);
}

// Not tried yet counts as worst, so that only a trial takes it.
Way fastest(CallClass& kind, Way usual, bool may_defer) noexcept {
  Way best = usual;
  std::uint64_t best_ns = recent(kind, usual);
  const auto compare = [&](Way way, std::uint64_t handicap) {
    const std::uint64_t ns = recent(kind, way);
    if (ns == 0 || (best_ns != 0 && ns + ns / handicap >= best_ns)) return;
    best = way;
    best_ns = ns;
  };
  // A twentieth better, or noise would have it go to and fro.
  for (const Way way : {Way::libc, Way::caller, Way::together}) compare(way, 20);
  // Half as much again: its bytes come cold, and the mover takes its time from other programs.
  if (may_defer) compare(Way::deferred, 2);
  return best;
}

// Do most calls come to the first use of their destination later than they take? Then the bytes may
// be there in time.
bool is_far(const DistanceTally& use, std::uint64_t call_ns) noexcept {
  constexpr std::uint64_t least_known = 3;
  std::uint64_t all = 0, far = 0;
  for (std::size_t i = 0; i < distance_classes; ++i) {
    const std::uint64_t calls = use.counts[i].load(std::memory_order_relaxed);
    all += calls;
    if (is_as_far(i, call_ns)) far += calls;
  }
  return all >= least_known && 2 * far >= all;
}

}  // namespace

Way choose(Site* site, Pages pages, std::size_t length, Operation operation) noexcept {
  if (const int way = fixed.load(std::memory_order_relaxed); way != not_fixed) {
    // A fill has no source that could be protected.
    if (static_cast<Way>(way) != Way::protected_ || operation == Operation::copy)
      return static_cast<Way>(way);
  }
  const Way usual = pages == Pages::missing ? Way::caller : Way::libc;
  const bool shareable =
      pages == Pages::missing || (length >= shared_from_bytes && operation == Operation::copy);
  const bool deferrable = may_defer_unasked(pages, length);
  if (site == nullptr || !(shareable || deferrable) || spent_ns() < trials_after_ns) return usual;
  CallClass& kind = site->kind(pages, length);
  const std::uint64_t calls = kind.calls.fetch_add(1, std::memory_order_relaxed);
  if (pages == Pages::missing && calls >= 64 && is_power(calls, 3)) return Way::libc;
  const bool may_defer =
      deferrable && calls >= deferred_after_calls &&
      is_far(site->distances[size_class(length)].use, recent(kind, usual) * (length >> 20));
  const WayTally& deferred = kind.tally(Way::deferred);
  // (How long a deferred call has kept the program waiting is known when its bytes are there.)
  if (may_defer && deferred.calls.load(std::memory_order_relaxed) == 0 &&
      recent(kind, Way::deferred) == 0)
    return Way::deferred;
  const Way best = fastest(kind, usual, may_defer);
  const bool periodic = calls % 256 == 255;
  if (!is_power(calls, 2) && !periodic) return best;
  // The two take turns.
  const auto turn = periodic ? calls / 256 : static_cast<std::uint64_t>(std::bit_width(calls)) / 2;
  const bool defer_now = may_defer && (turn % 2 == 0 || !shareable);
  if (!defer_now && !shareable) return usual;
  const Way trial = defer_now ? Way::deferred : Way::together;
  return best == trial ? usual : trial;
}

bool may_defer_unasked(Pages pages, std::size_t length) noexcept {
  return length >= (pages == Pages::missing ? deferred_from_bytes : deferred_there_from_bytes) &&
         !must_block.load(std::memory_order_relaxed) &&
         fixed.load(std::memory_order_relaxed) == not_fixed;
}

void fix_way(Way way) noexcept {
  fixed.store(static_cast<int>(way), std::memory_order_relaxed);
}

void defer_only_if_asked() noexcept {
  must_block.store(true, std::memory_order_relaxed);
}

}  // namespace haul::preload
