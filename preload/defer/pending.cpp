#include "preload/defer/pending.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/machine/clock.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/os/userfault.hpp"
#include "base/sync/backoff.hpp"
#include "preload/defer/samples.hpp"
#include "preload/protect/protected.hpp"

namespace haul::preload {
namespace {

using os::page_bytes;

enum class PendingStage : std::uint8_t { free, begun, moving };
struct Pending {
  PendingStage stage = PendingStage::free;
  Bounds dst;              // whole pages
  std::uintptr_t src = 0;  // of dst.begin
  std::uint64_t name = 0;  // no other's
  haul_ticket ticket{};
  WayTally* tally = nullptr;
  std::uint64_t call_ns = 0;    // what the call took
  std::uint64_t waited_ns = 0;  // what the program waited for its bytes since, as far as is known
  // What was moved for the last touch: where it ended, and how much it was.
  std::uintptr_t touched_end = 0;
  std::size_t touched_bytes = 0;
  // What is registered. (Another's registration must not be ended: older kernels would.)
  bool source_watched = false, dst_watched = false;

  Bounds source() const noexcept { return {src, src + (dst.end - dst.begin)}; }
  Bounds source_pages() const noexcept {
    const Bounds exact = source();
    return {exact.begin & ~(page_bytes - 1), (exact.end + page_bytes - 1) & ~(page_bytes - 1)};
  }
};

constexpr unsigned room = 64;
// Moved for one touch: little, so that whoever touched goes on soon, and twice as much each time
// that a touch begins where the last one's bytes ended, since that is somebody who reads on.
constexpr std::size_t least_touched_bytes = 16 * 1024, most_touched_bytes = 256 * 1024;
// Moved for a write to the source.
constexpr std::size_t written_bytes = 64 * 1024;
// What holding a thread, waking the one that serves, and waking the first again cost besides.
constexpr std::uint64_t held_ns = 10'000;

constinit Pending table[room];
constinit std::uint64_t last_name = 0;
constinit std::atomic<unsigned> copies{0};  // of the table
constinit std::atomic<std::uint64_t> touches{0};

void serve(const os::FaultEvent& event) noexcept;

// Provides the pages of `range` that are missing. An event that waits to be read may be in the way.
void provide_pages(const Pending& copy, const Bounds& range) noexcept {
  const int fd = userfault();
  std::uintptr_t at = range.begin;
  std::size_t step = range.end - range.begin;
  for (Backoff backoff(0, 100); at < range.end;) {
    const std::size_t bytes = std::min<std::size_t>(step, range.end - at);
    const std::int64_t result = os::provide(fd, at, copy.src + (at - copy.dst.begin), bytes);
    if (result > 0) {
      at += static_cast<std::size_t>(result);
    } else if (result == -ENOENT && bytes > page_bytes) {
      step = page_bytes;
    } else if (result == -EEXIST || result == -ENOENT) {
      os::wake_held(fd, at, page_bytes);
      at += page_bytes;
    } else if (os::FaultEvent event; result == -EAGAIN && os::next_event(fd, &event)) {
      serve(event);
    } else if (result == -EAGAIN || result == -ENOMEM) {
      backoff.pause();
    } else {
      return;  // the source is gone: the program has unmapped it behind our back
    }
  }
}

Bounds within(const Bounds& range, const Bounds& limits) noexcept {
  return {std::max(range.begin, limits.begin), std::min(range.end, limits.end)};
}

void serve_missing(std::uintptr_t page) noexcept {
  const std::uint64_t begun_ns = now_ns();
  for (Pending& copy : table) {
    if (copy.stage == PendingStage::free || page < copy.dst.begin || page >= copy.dst.end) continue;
    copy.touched_bytes = page == copy.touched_end
                             ? std::min(2 * copy.touched_bytes, most_touched_bytes)
                             : least_touched_bytes;
    const Bounds touched = within({page, page + copy.touched_bytes}, copy.dst);
    copy.touched_end = touched.end;
    provide_pages(copy, touched);
    copy.waited_ns += now_ns() - begun_ns + held_ns;
    return;
  }
  // Retired meanwhile, or what is mapped there by now is none of ours.
  os::unwatch(userfault(), page, page_bytes);
}

// What a pending copy has in its source's pages of `block` is moved, then all of them are free.
void serve_write(std::uintptr_t page) noexcept {
  Bounds block{page, page + page_bytes};
  for (const Pending& copy : table) {
    if (copy.stage != PendingStage::free && copy.source_pages().overlaps(block))
      block.end =
          std::max(block.end, within({page, page + written_bytes}, copy.source_pages()).end);
  }
  const std::uint64_t begun_ns = now_ns();
  for (Pending& copy : table) {
    if (copy.stage == PendingStage::free || !copy.source_pages().overlaps(block)) continue;
    const Bounds bytes = within(block, copy.source());
    const auto to = [&](std::uintptr_t from) { return copy.dst.begin + (from - copy.src); };
    provide_pages(copy, {to(bytes.begin) & ~(page_bytes - 1),
                         (to(bytes.end) + page_bytes - 1) & ~(page_bytes - 1)});
    copy.waited_ns += now_ns() - begun_ns + held_ns;
  }
  if (os::protect_writes(userfault(), block.begin, block.end - block.begin, false) != 0)
    os::unwatch(userfault(), page, page_bytes);
}

// The pages have moved on before their bytes came: they get them where they are now.
void serve_moved(const Bounds& from, std::uintptr_t to) noexcept {
  const bool samples_ended = move_sampled(from, to);
  for (const Pending& copy : table) {
    if (copy.stage == PendingStage::free || !copy.dst.overlaps(from)) continue;
    const Bounds part = within(from, copy.dst);
    Pending moved = copy;
    moved.src = copy.src + (part.begin - copy.dst.begin);
    moved.dst = {to + (part.begin - from.begin), to + (part.end - from.begin)};
    provide_pages(moved, moved.dst);
  }
  if (samples_ended) os::unwatch(userfault(), to, from.end - from.begin);
}

void serve(const os::FaultEvent& event) noexcept {
  switch (event.kind) {
    case os::FaultEvent::Kind::missing:
      if (serve_sampled(event.begin, Side::destination)) break;
      touches.fetch_add(1, std::memory_order_relaxed);
      serve_missing(event.begin);
      break;
    case os::FaultEvent::Kind::write:
      if (serve_sampled(event.begin, Side::source)) break;
      touches.fetch_add(1, std::memory_order_relaxed);
      serve_write(event.begin);
      break;
    case os::FaultEvent::Kind::moved: serve_moved({event.begin, event.end}, event.to); break;
    // The pages are to read as zero now: no copy may come there any more.
    case os::FaultEvent::Kind::removed:
      forget_sampled({event.begin, event.end});
      os::unwatch(userfault(), event.begin, event.end - event.begin);
      break;
    case os::FaultEvent::Kind::unmapped: forget_sampled({event.begin, event.end}); break;
  }
}

// Unwatches the source's pages, but for those that other copies still need.
void unwatch_source(const Pending& copy) noexcept {
  const Bounds pages = copy.source_pages();
  for (std::uintptr_t at = pages.begin; at < pages.end;) {
    std::uintptr_t end = pages.end;
    bool needed = false;
    for (const Pending& other : table) {
      if (other.stage == PendingStage::free || other.name == copy.name) continue;
      const Bounds others = other.source_pages();
      if (others.begin <= at && at < others.end) {
        needed = true;
        end = std::min(end, others.end);
      } else if (others.begin > at) {
        end = std::min(end, others.begin);
      }
    }
    if (!needed) os::unwatch(userfault(), at, end - at);
    at = end;
  }
}

void retire_held(Pending& copy) noexcept {
  if (copy.tally != nullptr)
    note_waits(*copy.tally, copy.dst.end - copy.dst.begin, copy.call_ns, copy.waited_ns);
  if (copy.dst_watched) os::unwatch(userfault(), copy.dst.begin, copy.dst.end - copy.dst.begin);
  if (copy.source_watched) unwatch_source(copy);
  copy.stage = PendingStage::free;
  copies.fetch_sub(1);
  one_less_watched();
}

// Is it done? What a mover could not do is done here.
bool is_done(const Pending& copy) noexcept {
  if (copy.stage != PendingStage::moving) return false;
  const int result = haul_test(copy.ticket);
  if (result < 0) provide_pages(copy, copy.dst);
  return result != 0;
}

}  // namespace

int begin_pending(const Bounds& dst, std::uintptr_t src) noexcept {
  Pending copy;
  copy.stage = PendingStage::begun;
  copy.dst = dst;
  copy.src = src;
  const Bounds source = copy.source_pages();
  const Held held;
  int number = -1;
  for (unsigned i = 0; i < room; ++i) {
    const Pending& other = table[i];
    if (other.stage == PendingStage::free) {
      if (number < 0) number = static_cast<int>(i);
    } else if (other.dst.overlaps(dst) || other.dst.overlaps(source) ||
               other.source_pages().overlaps(dst)) {
      return -1;
    }
  }
  if (number < 0 || is_forking() || !end_samples(dst, false) || !end_samples(source, false))
    return -1;
  copy.name = ++last_name;
  table[number] = copy;
  copies.fetch_add(1);
  one_more_watched();
  add_watched(dst);
  add_watched(source);
  return number;
}

bool watch_pending(int number) noexcept {
  // (Nobody else changes an entry that has begun.)
  Pending& copy = table[number];
  const int fd = userfault();
  const Bounds source = copy.source_pages();
  const std::size_t source_bytes = source.end - source.begin;
  copy.source_watched = os::watch(fd, source.begin, source_bytes, os::WatchFor::writes) == 0;
  copy.dst_watched =
      copy.source_watched && os::protect_writes(fd, source.begin, source_bytes, true) == 0 &&
      os::watch(fd, copy.dst.begin, copy.dst.end - copy.dst.begin, os::WatchFor::missing) == 0;
  return copy.dst_watched;
}

void set_ticket(int number, const haul_ticket& ticket, WayTally* tally,
                std::uint64_t begun_ns) noexcept {
  const std::uint64_t call_ns = now_ns() - begun_ns;
  const Held held;
  Pending& copy = table[number];
  copy.ticket = ticket;
  copy.tally = tally;
  copy.call_ns = call_ns;
  copy.stage = PendingStage::moving;
}

void retire(int number) noexcept {
  const Held held;
  retire_held(table[number]);
}

bool is_pending(const Bounds& pages) noexcept {
  for (const Pending& copy : table)
    if (copy.stage != PendingStage::free &&
        (copy.dst.overlaps(pages) || copy.source_pages().overlaps(pages)))
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
    for (Backoff backoff; copies.load() != 0 && now_ns() - begun_ns < patience_ns;) backoff.pause();
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
    for (Pending& copy : table) {
      if (copy.stage != PendingStage::moving ||
          !(copy.dst.overlaps(range) || copy.source_pages().overlaps(range)))
        continue;
      copy.waited_ns += waited_ns;
      if (is_done(copy)) {
        retire_held(copy);
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
  const Held held;
  for (os::FaultEvent event; os::next_event(userfault(), &event);) serve(event);
}

bool retire_done() noexcept {
  const Held held;
  bool all = end_old_samples();
  for (Pending& copy : table) {
    if (is_done(copy)) retire_held(copy);
    all = all && copy.stage == PendingStage::free;
  }
  return all;
}

void begin_process() noexcept {
  begin_watching();
  forget_samples();
  forget_protected();
  for (Pending& copy : table) copy.stage = PendingStage::free;
  copies.store(0);
}

std::uint64_t touches_served() noexcept {
  return touches.load(std::memory_order_relaxed);
}

}  // namespace haul::preload
