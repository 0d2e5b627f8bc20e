#include "preload/defer/distance.hpp"

#include <atomic>

#include "base/machine/huge_pages.hpp"
#include "base/machine/page_facts.hpp"
#include "base/machine/pages.hpp"
#include "base/os/descriptor.hpp"
#include "preload/defer/pending.hpp"
#include "preload/defer/samples.hpp"
#include "preload/defer/touches.hpp"

namespace haul::preload {
namespace {

using os::page_bytes;

// The first or the last page of this size within the range; empty: none.
Bounds page_at_end(const Bounds& range, std::size_t bytes, bool last) noexcept {
  const Bounds whole{(range.begin + bytes - 1) & ~(bytes - 1), range.end & ~(bytes - 1)};
  if (whole.begin >= whole.end) return {};
  return last ? Bounds{whole.end - bytes, whole.end} : Bounds{whole.begin, whole.begin + bytes};
}

// The page to be watched: a small one, or a whole huge one. (What the kernel would have to split is
// left alone.)
Bounds choose_page(const Bounds& range, bool last) noexcept {
  os::Descriptor map = os::Descriptor::of(os::open_page_map());
  Bounds page = page_at_end(range, page_bytes, last);
  if (page.end != 0 && os::huge_bytes(map.number(), page.begin, page_bytes) != 0) {
    page = page_at_end(range, os::huge_page_bytes, last);
    if (page.end != 0 && os::huge_bytes(map.number(), page.begin, os::huge_page_bytes) !=
                             static_cast<std::int64_t>(os::huge_page_bytes))
      page = {};
  }
  map.close();
  return page;
}

void sample(const Bounds& range, bool last, Side side, DistanceTally& tally) noexcept {
  const Bounds page = choose_page(range, last);
  if (page.end == 0 || !os::is_private_memory(page.begin, page.end, side == Side::destination))
    return;
  const Held held;
  // Counted before the thread that serves is looked at: it may just end, since nothing was watched.
  one_more_watched();
  if (is_serving() && !is_pending(page)) begin_sample(page, side, tally);
  one_less_watched();
}

}  // namespace

void sample_distance(const SampledCall& call, CallDistances& distances, bool may_make) noexcept {
  if (!is_own_process() || !ready_to_serve(may_make)) return;
  std::uint64_t told = 0;
  for (const auto& count : distances.use.counts) told += count.load(std::memory_order_relaxed);
  const bool last = told % 2 != 0;
  sample({call.dst, call.dst + call.length}, last, Side::destination, distances.use);
  if (call.src != 0)
    sample({call.src, call.src + call.length}, last, Side::source, distances.write);
}

void end_distances() noexcept {
  if (watched_count() == 0 || !is_own_process()) return;
  const Held held;
  end_samples({0, UINTPTR_MAX}, true);
}

}  // namespace haul::preload
