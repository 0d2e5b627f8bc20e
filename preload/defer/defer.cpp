#include "preload/defer/defer.hpp"

#include "base/machine/clock.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/machine/page_facts.hpp"
#include "base/machine/pages.hpp"
#include "base/os/descriptor.hpp"
#include "base/private.hpp"
#include "preload/defer/guards.hpp"
#include "preload/defer/pending.hpp"
#include "preload/defer/touches.hpp"

namespace haul::preload {
namespace {

using os::page_bytes;

struct PlainMove {
  std::uintptr_t dst, src;
  void* (*move)(void*, const void*, std::size_t);

  void operator()(std::uintptr_t begin, std::uintptr_t end) const noexcept {
    if (begin < end)
      move(reinterpret_cast<void*>(begin), reinterpret_cast<const void*>(src + (begin - dst)),
           end - begin);
  }
};

// Pages that are there will not be filled by anybody else. (Looked at when they are watched: from
// then on none appears but by those who serve.)
void move_present(const Bounds& pages, const PlainMove& move) noexcept {
  os::Descriptor map = os::Descriptor::of(os::open_page_map());
  Bounds rest = pages;
  for (os::PageRun run;
       rest.begin < rest.end && os::first_present(map.number(), rest.begin, rest.end, &run);
       rest.begin = run.end)
    move(run.begin, run.end);
  map.close();
}

bool is_private(const Bounds& dst, std::uintptr_t src) noexcept {
  const std::uintptr_t src_end = src + (dst.end - dst.begin);
  return os::is_private_memory(dst.begin, dst.end, true) &&
         os::is_private_memory(src & ~(page_bytes - 1), src_end, false);
}

}  // namespace

NotDeferred defer(std::uintptr_t dst, std::uintptr_t src, std::size_t length, bool may_make,
                  void* (*move_bytes)(void*, const void*, std::size_t), WayTally* tally) noexcept {
  const std::uint64_t begun_ns = now_ns();
  const std::uintptr_t end = dst + length;
  const Bounds pages{(dst + page_bytes - 1) & ~(page_bytes - 1), end & ~(page_bytes - 1)};
  const std::uintptr_t from = src + (pages.begin - dst);
  const PlainMove move{dst, src, move_bytes};
  if (pages.begin >= pages.end || !is_private(pages, from)) return NotDeferred::not_private;
  if (!ready_to_serve(may_make)) return NotDeferred::no_userfault;
  // Before the source is protected: what is to be written may share pages with it.
  move(dst, pages.begin);
  move(pages.end, end);
  int number = begin_pending(pages, from);
  if (number < 0) {
    settle({dst, end}, false);
    settle({src, src + length}, false);
    number = begin_pending(pages, from);
    if (number < 0) return NotDeferred::no_mover;
  }
  NotDeferred result = NotDeferred::no_userfault;
  if (is_serving() && watch_pending(number)) {
    move_present(pages, move);
    haul_ticket ticket;
    if (haul_private_defer(userfault(), huge_pages_allowed(), pages.begin, from,
                           pages.end - pages.begin, &ticket)) {
      set_ticket(number, ticket, tally, begun_ns);
      return NotDeferred::deferred;
    }
    result = NotDeferred::no_mover;
  }
  retire(number);
  return result;
}

}  // namespace haul::preload
