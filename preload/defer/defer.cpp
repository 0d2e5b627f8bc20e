#include "preload/defer/defer.hpp"

#include "base/machine/clock.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/machine/page_facts.hpp"
#include "base/machine/pages.hpp"
#include "base/os/descriptor.hpp"
#include "base/private.hpp"
#include "preload/defer/aside.hpp"
#include "preload/defer/events.hpp"
#include "preload/defer/guards.hpp"
#include "preload/defer/pending.hpp"
#include "preload/defer/touches.hpp"

namespace haul::preload {
namespace {

using os::page_bytes;

// What is at hand of a call, by libc's function.
void write_at_once(const LargeCall& call, std::uintptr_t begin, std::uintptr_t end) noexcept {
  if (begin < end) call.by_libc(begin - call.dst, end - begin);
}

// Pages that are there will not be filled by anybody else. (Looked at when they are watched: from
// then on none appears but by those who serve.)
void write_present(const LargeCall& call, const Bounds& pages) noexcept {
  os::Descriptor map = os::Descriptor::of(os::open_page_map());
  Bounds rest = pages;
  for (os::PageRun run;
       rest.begin < rest.end && os::first_present(map.number(), rest.begin, rest.end, &run);
       rest.begin = run.end)
    write_at_once(call, run.begin, run.end);
  map.close();
}

// (Of the destination only what is whole pages is for others.)
bool is_private(const LargeCall& call, const Bounds& pages) noexcept {
  if (!os::is_private_memory(pages.begin, pages.end, true)) return false;
  if (call.operation == Operation::fill) return true;
  const std::uintptr_t src = call.src_or_value + (pages.begin - call.dst);
  return os::is_private_memory(src & ~(page_bytes - 1), src + (pages.end - pages.begin), false);
}

bool give_to_mover(const LargeCall& call, const Bounds& pages, bool is_aside,
                   haul_ticket* ticket) noexcept {
  HaulPrivateDeferred deferred;
  deferred.userfault = userfault();
  deferred.may_make_huge = huge_pages_allowed();
  deferred.fills = call.operation == Operation::fill;
  if (deferred.fills) {
    deferred.value = static_cast<std::uint8_t>(call.src_or_value);
  } else {
    deferred.src = call.src_or_value + (pages.begin - call.dst);
  }
  deferred.dst = pages.begin;
  deferred.length = pages.end - pages.begin;
  if (is_aside) deferred.asides = &asides();
  deferred.turnstile = &providers();
  return haul_private_defer(&deferred, ticket);
}

// What of the destination is for others: whole pages, of a destination that is there whole huge
// ones.
Bounds whole_pages(const LargeCall& call, std::size_t bytes) noexcept {
  return {(call.dst + bytes - 1) & ~(bytes - 1), (call.dst + call.length) & ~(bytes - 1)};
}

}  // namespace

bool lies_on_huge_pages(const LargeCall& call) noexcept {
  const Bounds blocks = whole_pages(call, os::huge_page_bytes);
  if (blocks.begin >= blocks.end) return false;
  os::Descriptor map = os::Descriptor::of(os::open_page_map());
  const std::size_t bytes = blocks.end - blocks.begin;
  const std::int64_t huge = os::huge_bytes(map.number(), blocks.begin, bytes);
  map.close();
  return huge > 0 && static_cast<std::size_t>(huge) >= bytes - bytes / 4;
}

NotDeferred defer(const LargeCall& call, Pages there, bool may_make, WayTally* tally) noexcept {
  const std::uint64_t begun_ns = now_ns();
  const bool has_pages = there != Pages::missing;
  if (has_pages && !(may_put_aside() && lies_on_huge_pages(call))) return NotDeferred::pages_stay;
  const std::uintptr_t end = call.dst + call.length;
  const Bounds pages = whole_pages(call, has_pages ? os::huge_page_bytes : page_bytes);
  if (pages.begin >= pages.end || !is_private(call, pages)) return NotDeferred::not_private;
  if (!ready_to_serve(may_make)) return NotDeferred::no_userfault;
  // Before the source is protected: what is to be written may share pages with it.
  write_at_once(call, call.dst, pages.begin);
  write_at_once(call, pages.end, end);
  int number = begin_pending(call, pages);
  if (number < 0) {
    settle({call.dst, end}, false);
    if (call.operation == Operation::copy)
      settle({call.src_or_value, call.src_or_value + call.length}, false);
    number = begin_pending(call, pages);
    if (number < 0) return NotDeferred::no_mover;
  }
  NotDeferred result = NotDeferred::no_userfault;
  if (is_serving() && watch_pending(number)) {
    haul_ticket ticket;
    if (has_pages && put_pending_aside(number) == 0) {
      result = NotDeferred::pages_stay;
    } else if (write_present(call, pages); give_to_mover(call, pages, has_pages, &ticket)) {
      set_ticket(number, ticket, tally, begun_ns);
      return NotDeferred::deferred;
    } else {
      result = NotDeferred::no_mover;
    }
  }
  retire(number);
  return result;
}

}  // namespace haul::preload
