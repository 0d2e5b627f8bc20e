#include "preload/defer/pending.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/machine/clock.hpp"
#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "base/sync/backoff.hpp"
#include "preload/defer/aside.hpp"
#include "preload/defer/events.hpp"
#include "preload/defer/samples.hpp"
#include "preload/protect/protected.hpp"

namespace haul::preload {
namespace {

using os::page_bytes;

enum class PendingStage : std::uint8_t { free, begun, moving };
struct Pending {
  PendingStage stage = PendingStage::free;
  Bounds dst;  // whole pages
  Operation operation = Operation::copy;
  std::uintptr_t src = 0;   // of dst.begin, of a copy
  unsigned char value = 0;  // of each byte, of a fill
  haul_ticket ticket{};
  WayTally* tally = nullptr;
  std::uint64_t call_ns = 0;    // what the call took
  std::uint64_t waited_ns = 0;  // what the program waited for its bytes since, as far as is known
  unsigned number = 0;          // its place in the table
  bool has_asides = false;
  // What was moved for the last touch: where it ended, and how much it was.
  std::uintptr_t touched_end = 0;
  std::size_t touched_bytes = 0;
  // What is registered. (Another's registration must not be ended: older kernels would.)
  bool source_watched = false, dst_watched = false;

  // (Empty where there is none: it overlaps nothing.)
  Bounds source() const noexcept {
    return operation == Operation::fill ? Bounds{} : Bounds{src, src + (dst.end - dst.begin)};
  }
  Bounds source_pages() const noexcept {
    const Bounds exact = source();
    return {exact.begin & ~(page_bytes - 1), (exact.end + page_bytes - 1) & ~(page_bytes - 1)};
  }
};

constexpr unsigned room = HaulPrivateAsides::room;
// Moved for one touch: little, so that whoever touched goes on soon, and twice as much each time
// that a touch begins where the last one's bytes ended, since that is somebody who reads on.
constexpr std::size_t least_touched_bytes = 16 * 1024, most_touched_bytes = 256 * 1024;
// Moved for a write to the source.
constexpr std::size_t written_bytes = 64 * 1024;
// What holding a thread, waking the one that serves, and waking the first again cost besides.
constexpr std::uint64_t held_ns = 10'000;

constinit Pending table[room];
constinit std::atomic<unsigned> pending_calls{0};  // of the table
constinit std::atomic<std::uint64_t> touches{0};

// False: there is no event. Whoever it holds has waited since then.
bool serve_next(std::uint64_t since_ns) noexcept;

// What fills are served from: the bytes of the last one.
alignas(page_bytes) constinit unsigned char repeated[64 * 1024];
std::uintptr_t repeat(unsigned char value) noexcept {
  if (repeated[0] != value) front.set(repeated, value, sizeof repeated);
  return reinterpret_cast<std::uintptr_t>(repeated);
}

// Has the page of `at` brought that was put aside. How many bytes from there on are there then.
std::int64_t bring(const Pending& call, std::uintptr_t at) noexcept {
  if (!call.has_asides) return 0;
  const std::uintptr_t block = at & ~(os::huge_page_bytes - 1);
  const bool fills = call.operation == Operation::fill;
  const std::int64_t result =
      bring_aside(call.number, block, fills ? 0 : call.src + (block - call.dst.begin), call.value);
  return result <= 0 ? result : result - static_cast<std::int64_t>(at - block);
}

// Provides the pages of `range` that are missing. An event that waits to be read may be in the way.
void provide_pages(const Pending& call, const Bounds& range) noexcept {
  const int fd = userfault();
  const bool fills = call.operation == Operation::fill;
  std::uintptr_t at = range.begin;
  std::size_t step = range.end - range.begin;
  for (Backoff backoff(0, 100); at < range.end;) {
    const std::size_t longest = fills ? std::min(step, sizeof repeated) : step;
    const std::size_t bytes = std::min<std::size_t>(longest, range.end - at);
    // (An event that was served meanwhile may have been another fill's.)
    const std::uintptr_t from = fills ? repeat(call.value) : call.src + (at - call.dst.begin);
    std::int64_t result = bring(call, at);
    if (result == 0) result = os::provide(fd, at, from, bytes);
    if (result > 0) {
      at += static_cast<std::size_t>(result);
    } else if (result == -ENOENT && bytes > page_bytes) {
      step = page_bytes;
    } else if (result == -EEXIST || result == -ENOENT) {
      os::wake_held(fd, at, page_bytes);
      at += page_bytes;
    } else if (result == -EAGAIN || result == -ENOMEM) {
      if (result == -ENOMEM || !serve_next(now_ns())) backoff.pause();
    } else {
      return;  // the source is gone: the program has unmapped it behind our back
    }
  }
}

Bounds within(const Bounds& range, const Bounds& limits) noexcept {
  return {std::max(range.begin, limits.begin), std::min(range.end, limits.end)};
}

// `since_ns`: who touched it has waited since then.
void serve_missing(std::uintptr_t page, std::uint64_t since_ns) noexcept {
  for (Pending& call : table) {
    if (call.stage == PendingStage::free || page < call.dst.begin || page >= call.dst.end) continue;
    call.touched_bytes = page == call.touched_end
                             ? std::min(2 * call.touched_bytes, most_touched_bytes)
                             : least_touched_bytes;
    const Bounds touched = within({page, page + call.touched_bytes}, call.dst);
    call.touched_end = touched.end;
    provide_pages(call, touched);
    call.waited_ns += now_ns() - since_ns + held_ns;
    return;
  }
  // Retired meanwhile, or what is mapped there by now is none of ours.
  os::unwatch(userfault(), page, page_bytes);
}

// What a pending call has in its source's pages of `block` is moved, then all of them are free.
void serve_write(std::uintptr_t page, std::uint64_t since_ns) noexcept {
  Bounds block{page, page + page_bytes};
  for (const Pending& call : table) {
    if (call.stage != PendingStage::free && call.source_pages().overlaps(block))
      block.end =
          std::max(block.end, within({page, page + written_bytes}, call.source_pages()).end);
  }
  for (Pending& call : table) {
    if (call.stage == PendingStage::free || !call.source_pages().overlaps(block)) continue;
    const Bounds bytes = within(block, call.source());
    const auto to = [&](std::uintptr_t from) { return call.dst.begin + (from - call.src); };
    provide_pages(call, {to(bytes.begin) & ~(page_bytes - 1),
                         (to(bytes.end) + page_bytes - 1) & ~(page_bytes - 1)});
    call.waited_ns += now_ns() - since_ns + held_ns;
  }
  if (os::protect_writes(userfault(), block.begin, block.end - block.begin, false) != 0)
    os::unwatch(userfault(), page, page_bytes);
}

// The pages have moved on before their bytes came: they get them where they are now.
void serve_moved(const Bounds& from, std::uintptr_t to) noexcept {
  const bool samples_ended = move_sampled(from, to);
  for (const Pending& call : table) {
    if (call.stage == PendingStage::free || !call.dst.overlaps(from)) continue;
    const Bounds part = within(from, call.dst);
    Pending moved = call;
    moved.src = call.src + (part.begin - call.dst.begin);
    moved.has_asides = false;
    moved.dst = {to + (part.begin - from.begin), to + (part.end - from.begin)};
    provide_pages(moved, moved.dst);
  }
  if (samples_ended) os::unwatch(userfault(), to, from.end - from.begin);
}

void serve(const os::FaultEvent& event, std::uint64_t since_ns) noexcept {
  switch (event.kind) {
    case os::FaultEvent::Kind::missing:
      if (serve_sampled(event.begin, Side::destination)) break;
      touches.fetch_add(1, std::memory_order_relaxed);
      serve_missing(event.begin, since_ns);
      break;
    case os::FaultEvent::Kind::write:
      if (serve_sampled(event.begin, Side::source)) break;
      touches.fetch_add(1, std::memory_order_relaxed);
      serve_write(event.begin, since_ns);
      break;
    case os::FaultEvent::Kind::moved: serve_moved({event.begin, event.end}, event.to); break;
    // The pages are to read as zero now: no bytes may come there any more.
    case os::FaultEvent::Kind::removed:
      forget_sampled({event.begin, event.end});
      os::unwatch(userfault(), event.begin, event.end - event.begin);
      break;
    case os::FaultEvent::Kind::unmapped: forget_sampled({event.begin, event.end}); break;
  }
}

bool serve_next(std::uint64_t since_ns) noexcept {
  const NextEvent event;
  if (event) serve(*event, since_ns);
  return static_cast<bool>(event);
}

// Unwatches the source's pages, but for those that other copies still need.
void unwatch_source(const Pending& call) noexcept {
  const Bounds pages = call.source_pages();
  for (std::uintptr_t at = pages.begin; at < pages.end;) {
    std::uintptr_t end = pages.end;
    bool needed = false;
    for (const Pending& other : table) {
      if (other.stage == PendingStage::free || other.number == call.number) continue;
      const Bounds others = other.source_pages();
      if (others.begin <= at && at < others.end) {
        needed = true;
        end = std::min(end, others.end);
      } else if (others.begin > at) {
        end = std::min(end, others.begin);
      }
    }
    if (!needed) end_watch({at, end});
    at = end;
  }
}

void retire_held(Pending& call) noexcept {
  if (call.tally != nullptr)
    note_waits(*call.tally, call.dst.end - call.dst.begin, call.call_ns, call.waited_ns);
  if (call.has_asides) end_aside(call.number, call.stage == PendingStage::begun);
  if (call.dst_watched) end_watch(call.dst);
  if (call.source_watched) unwatch_source(call);
  call.stage = PendingStage::free;
  pending_calls.fetch_sub(1);
  one_less_watched();
}

// Is it done? What a mover could not do is done here.
bool is_done(const Pending& call) noexcept {
  if (call.stage != PendingStage::moving) return false;
  const int result = haul_test(call.ticket);
  if (result < 0) provide_pages(call, call.dst);
  return result != 0;
}

}  // namespace

int begin_pending(const LargeCall& call, const Bounds& pages) noexcept {
  Pending entered;
  entered.stage = PendingStage::begun;
  entered.dst = pages;
  entered.operation = call.operation;
  if (call.operation == Operation::fill) {
    entered.value = static_cast<unsigned char>(call.src_or_value);
  } else {
    entered.src = call.src_or_value + (pages.begin - call.dst);
  }
  const Bounds source = entered.source_pages();
  const Held held;
  int number = -1;
  for (unsigned i = 0; i < room; ++i) {
    const Pending& other = table[i];
    if (other.stage == PendingStage::free) {
      if (number < 0) number = static_cast<int>(i);
    } else if (other.dst.overlaps(pages) || other.dst.overlaps(source) ||
               other.source_pages().overlaps(pages)) {
      return -1;
    }
  }
  if (number < 0 || is_forking() || is_owed(pages) || is_owed(source) ||
      !end_samples(pages, false) || !end_samples(source, false))
    return -1;
  entered.number = static_cast<unsigned>(number);
  table[number] = entered;
  pending_calls.fetch_add(1);
  one_more_watched();
  add_watched(pages);
  if (call.operation == Operation::copy) add_watched(source);
  return number;
}

bool watch_pending(int number) noexcept {
  // (Nobody else changes an entry that has begun.)
  Pending& call = table[number];
  const int fd = userfault();
  if (call.operation == Operation::copy) {
    const Bounds source = call.source_pages();
    const std::size_t bytes = source.end - source.begin;
    call.source_watched = os::watch(fd, source.begin, bytes, os::WatchFor::writes) == 0;
    if (!call.source_watched || os::protect_writes(fd, source.begin, bytes, true) != 0)
      return false;
  }
  call.dst_watched =
      os::watch(fd, call.dst.begin, call.dst.end - call.dst.begin, os::WatchFor::missing) == 0;
  return call.dst_watched;
}

std::size_t put_pending_aside(int number) noexcept {
  const Held held;
  Pending& call = table[number];
  const std::size_t bytes = put_aside(call.number, call.dst);
  call.has_asides = bytes != 0;
  return bytes;
}

void set_ticket(int number, const haul_ticket& ticket, WayTally* tally,
                std::uint64_t begun_ns) noexcept {
  const std::uint64_t call_ns = now_ns() - begun_ns;
  const Held held;
  Pending& call = table[number];
  call.ticket = ticket;
  call.tally = tally;
  call.call_ns = call_ns;
  call.stage = PendingStage::moving;
}

void retire(int number) noexcept {
  const Held held;
  retire_held(table[number]);
}

bool any_pending() noexcept {
  return pending_calls.load(std::memory_order_relaxed) != 0;
}

bool is_pending(const Bounds& pages) noexcept {
  for (const Pending& call : table)
    if (call.stage != PendingStage::free &&
        (call.dst.overlaps(pages) || call.source_pages().overlaps(pages)))
      return true;
  return false;
}

void settle(const Bounds& range, bool given_back) noexcept {
  if (watched_count() == 0 || !may_be_watched(range)) return;
  // A child that shares this memory (vfork()) waits for its parent's thread, which retires what is
  // done. (In one that has a copy of it, nobody does.)
  if (!is_own_process()) {
    constexpr std::uint64_t patience_ns = 1'000'000'000;
    const std::uint64_t begun_ns = now_ns();
    for (Backoff backoff; pending_calls.load() != 0 && now_ns() - begun_ns < patience_ns;)
      backoff.pause();
    return;
  }
  std::uint64_t waited_since_ns = now_ns();
  for (Backoff backoff;; backoff.pause()) {
    const Held held;
    const std::uint64_t now = now_ns();
    const std::uint64_t waited_ns = now - waited_since_ns;
    waited_since_ns = now;
    bool waits = !end_samples(range, given_back);
    waits = !end_protected(range) || waits;
    for (Pending& call : table) {
      if (call.stage != PendingStage::moving ||
          !(call.dst.overlaps(range) || call.source_pages().overlaps(range)))
        continue;
      call.waited_ns += waited_ns;
      if (is_done(call)) {
        retire_held(call);
      } else {
        waits = true;
      }
    }
    if (!waits) return;
  }
}

void settle_all() noexcept {
  settle({0, UINTPTR_MAX}, false);
}

void settle_for_fork() noexcept {
  begin_fork();
  settle_all();
}

void serve_all() noexcept {
  for (std::uint64_t since_ns = now_ns();;) {
    const Held held;
    const std::uint64_t begun_ns = now_ns();
    if (!serve_next(since_ns)) return;
    // The next one may have come while this one was served.
    since_ns = begun_ns;
  }
}

bool retire_done() noexcept {
  const Held held;
  bool all = end_old_samples();
  for (Pending& call : table) {
    if (is_done(call)) retire_held(call);
    all = all && call.stage == PendingStage::free;
  }
  return end_owed() && all;
}

void begin_process() noexcept {
  begin_watching();
  forget_samples();
  forget_protected();
  forget_asides();
  begin_events();
  for (Pending& call : table) call.stage = PendingStage::free;
  pending_calls.store(0);
}

std::uint64_t touches_served() noexcept {
  return touches.load(std::memory_order_relaxed);
}

}  // namespace haul::preload
