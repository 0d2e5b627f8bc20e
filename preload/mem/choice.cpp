#include "preload/mem/choice.hpp"

#include <algorithm>
#include <atomic>

namespace haul::preload {
namespace {

constexpr int not_fixed = -1;
constinit std::atomic<int> fixed{not_fixed};
constinit std::atomic<bool> must_block{false};

// Memory that is there moves as fast as the memory goes, so two threads gain only where it is
// large; below this it is libc's.
constexpr std::size_t shared_from_bytes = std::size_t{4} << 20;

// Making a mover takes a program two milliseconds, and making the thread that serves those who
// touch a deferred call's memory, with the first samples of distances, about five (Xeon, two
// virtual cores). So a program that copies little gets neither, and another one the first before
// the second.
constexpr std::uint64_t share_after_ns = 20'000'000, defer_after_ns = 100'000'000;

// A deferred call whose bytes are used sooner than those of most can cost several others, so it is
// not tried before there were so many of its kind.
constexpr std::uint64_t deferred_after_calls = 12;

// libc's way with missing pages can cost several times the others.
constexpr std::uint64_t libc_after_calls = 64;

// A way that is not taken is tried again when this many times its loss has been spent on calls of
// its kind: soon after it was the best, and after each trial half as often, down to a share of
// time that no program notices.
constexpr std::uint32_t least_patience = 16, first_patience = 32, most_patience = 256;

std::uint64_t recent(CallClass& kind, Way way) noexcept {
  return kind.tally(way).recent_ns_per_mib.load(std::memory_order_relaxed);
}

// Which ways a call may take unasked.
struct OpenWays {
  Way usual;
  bool shareable, may_defer;

  bool allow(Way way) const noexcept {
    switch (way) {
      case Way::libc: return true;
      case Way::caller: return usual == Way::caller;
      case Way::together: return shareable;
      case Way::deferred: return may_defer;
      case Way::protected_: break;
    }
    return false;
  }
};
constexpr Way unasked_ways[] = {Way::libc, Way::caller, Way::together, Way::deferred};

// Not tried yet counts as worst, so that only a trial takes it.
Way fastest(CallClass& kind, const OpenWays& open_ways) noexcept {
  Way best = open_ways.usual;
  std::uint64_t best_ns = recent(kind, best);
  for (const Way way : unasked_ways) {
    // A twentieth better, or noise would have it go to and fro. Deferring half as much again: its
    // bytes come cold, and the mover takes its time from other programs.
    const std::uint64_t handicap = way == Way::deferred ? 2 : 20, ns = recent(kind, way);
    if (!open_ways.allow(way) || ns == 0 || (best_ns != 0 && ns + ns / handicap >= best_ns))
      continue;
    best = way;
    best_ns = ns;
  }
  return best;
}

// A way that is no longer the best may have lost by a slow moment that all ways would have had.
void note_best(CallClass& kind, Way best, std::uint64_t spent_ns) noexcept {
  const auto now = static_cast<std::uint8_t>(best);
  const std::uint8_t before = kind.best.exchange(now, std::memory_order_relaxed);
  if (before == now || kind.calls.load(std::memory_order_relaxed) <= 1) return;
  WayTally& lost = kind.tally(static_cast<Way>(before));
  lost.tried_at_ns.store(spent_ns, std::memory_order_relaxed);
  lost.patience.store(least_patience, std::memory_order_relaxed);
}

std::uint64_t first_tried_after(Way way) noexcept {
  switch (way) {
    case Way::libc: return libc_after_calls;
    case Way::deferred: return deferred_after_calls;
    default: return 1;
  }
}

// What a trial loses, beside the best way: an eighth of a call at least, seven calls at most. Of a
// way of which nothing is known though it was tried (it was refused, or its bytes are on their
// way), the most.
std::uint64_t loss_per_mib(std::uint64_t way_ns, std::uint64_t best_ns) noexcept {
  const std::uint64_t least = best_ns / 8, most = 7 * best_ns;
  if (way_ns == 0) return most;
  return std::clamp(way_ns > best_ns ? way_ns - best_ns : 0, least, most);
}

// Is this call the one that tries this way again? Of several threads one is told so.
bool is_due(CallClass& kind, Way way, Way best, std::uint64_t calls, std::size_t length,
            std::uint64_t spent_ns) noexcept {
  WayTally& tally = kind.tally(way);
  std::uint64_t tried_at = tally.tried_at_ns.load(std::memory_order_relaxed);
  std::uint32_t patience = tally.patience.load(std::memory_order_relaxed);
  if (patience == 0) {
    if (calls < first_tried_after(way)) return false;
    patience = first_patience / 2;
  } else {
    const std::uint64_t loss =
        loss_per_mib(recent(kind, way), recent(kind, best)) * (length >> 10) >> 10;
    // (Another thread may have counted more meanwhile.)
    if (spent_ns < tried_at + patience * loss) return false;
  }
  if (!tally.tried_at_ns.compare_exchange_strong(tried_at, spent_ns, std::memory_order_relaxed))
    return false;
  tally.patience.store(std::min(2 * patience, most_patience), std::memory_order_relaxed);
  return true;
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
  if (site == nullptr || !(shareable || deferrable) || spent_ns() < share_after_ns) return usual;
  CallClass& kind = site->kind(pages, length);
  const std::uint64_t calls = kind.calls.fetch_add(1, std::memory_order_relaxed);
  const bool may_defer = deferrable && is_far(site->distances[size_class(length)].use,
                                              recent(kind, usual) * (length >> 20));
  const OpenWays open_ways{usual, shareable, may_defer};
  const Way best = fastest(kind, open_ways);
  const std::uint64_t spent = kind.spent_ns();
  note_best(kind, best, spent);
  for (const Way way : unasked_ways)
    if (way != best && open_ways.allow(way) && is_due(kind, way, best, calls, length, spent))
      return way;
  return best;
}

bool may_defer_unasked(Pages pages, std::size_t length) noexcept {
  return length >= (pages == Pages::missing ? deferred_from_bytes : deferred_there_from_bytes) &&
         spent_ns() >= defer_after_ns && !must_block.load(std::memory_order_relaxed) &&
         fixed.load(std::memory_order_relaxed) == not_fixed;
}

void fix_way(Way way) noexcept {
  fixed.store(static_cast<int>(way), std::memory_order_relaxed);
}

void defer_only_if_asked() noexcept {
  must_block.store(true, std::memory_order_relaxed);
}

}  // namespace haul::preload
