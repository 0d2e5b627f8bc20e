#include "preload/protect/protected.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/machine/clock.hpp"
#include "base/machine/page_facts.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/own_memory.hpp"
#include "base/sync/backoff.hpp"
#include "preload/defer/pending.hpp"
#include "preload/mem/front.hpp"

namespace haul::preload {
namespace {

using os::MemoryRights;

// moved: the bytes are there, and the rights are to be given back.
enum class ProtectedStage : std::uint8_t { free, begun, moving, moved };
struct ProtectedCopy {
  ProtectedStage stage = ProtectedStage::free;
  ProtectedMove move;
  std::int64_t thread = 0;  // who begins it
  haul_ticket ticket{};
  WayTally* tally = nullptr;
  std::uint64_t call_ns = 0, waited_ns = 0;
  std::uint64_t ended_ns = 0;  // since when the mover has nothing more to do with it

  // Whoever waits for what the kernel refuses does not wait for ever.
  bool is_given_up() const noexcept {
    constexpr std::uint64_t patience_ns = 1'000'000'000;
    return now_ns() - ended_ns >= patience_ns;
  }
  bool is_free() const noexcept { return stage == ProtectedStage::free; }
  bool has(const Bounds& range) const noexcept {
    return !is_free() && (move.dst.overlaps(range) || move.src.overlaps(range));
  }
};

constexpr unsigned room = 64;

constinit ProtectedCopy copies[room];
constinit std::atomic<bool> no_more{false};
constinit std::atomic<std::uint64_t> touches{0};

// False: the kernel refuses for now, since the process has as many mappings, or as much memory that
// may be written, as it may have. (It refuses for good where the program has unmapped something
// behind our back, or mapped something else there.)
bool allow(const Bounds& range) noexcept {
  const auto allow_run = [](const os::PageRun& run) {
    return os::set_rights(run.begin, run.end - run.begin, MemoryRights::read_write);
  };
  if (range.begin >= range.end || allow_run({range.begin, range.end}) != -ENOMEM) return true;
  std::uintptr_t at = range.begin;
  bool all = true;
  for (os::PageRun run; at < range.end; at = run.end) {
    const int found = os::first_mapped(at, range.end, &run);
    if (found <= 0) return found == 0 && all;
    all = allow_run(run) != -ENOMEM && all;
  }
  return all;
}

// The source's pages, but for those that other copies still read.
bool allow_source(const ProtectedCopy& copy) noexcept {
  Bounds rest = copy.move.src;
  bool all = true;
  while (rest.begin < rest.end) {
    Bounds next{rest.end, rest.end};  // of another's, the first from here on
    for (const ProtectedCopy& other : copies) {
      if (&other == &copy || other.is_free() || !other.move.src.overlaps(rest)) continue;
      const std::uintptr_t begin = std::max(other.move.src.begin, rest.begin);
      if (begin < next.begin || (begin == next.begin && other.move.src.end > next.end))
        next = {begin, other.move.src.end};
    }
    all = allow({rest.begin, next.begin}) && all;
    rest.begin = next.end;
  }
  return all;
}

// What no mover could move, since the process had no descriptor left: by the kernel, as the program
// may have taken some of the source away behind our back, whose bytes are then nobody's; or by this
// thread, where a filter refuses that. The destination may be touched meanwhile. False: not now.
bool move_rest(const ProtectedMove& move) noexcept {
  if (!allow(move.dst)) return false;
  for (std::size_t done = 0; done < move.length;) {
    const std::uintptr_t to = move.to + done, from = move.from + done;
    const std::size_t rest = move.length - done;
    const std::int64_t now = os::copy_own(to, from, rest);
    if (now == -EPERM || now == -ENOSYS) {
      front.copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), rest);
      return true;
    }
    done += now > 0 ? static_cast<std::size_t>(now) : os::page_bytes - from % os::page_bytes;
  }
  return true;
}

// The mover has nothing more to do with it. (What it has left may be impossible to move now.)
void end_move(ProtectedCopy& copy, bool failed) noexcept {
  const ProtectedMove& move = copy.move;
  if (copy.ended_ns == 0) copy.ended_ns = now_ns();
  if (failed &&
      os::force_write(move.to, move.from, move.length) != static_cast<std::int64_t>(move.length) &&
      !move_rest(move) && !copy.is_given_up())
    return;
  if (copy.tally != nullptr) note_waits(*copy.tally, move.length, copy.call_ns, copy.waited_ns);
  copy.stage = ProtectedStage::moved;
}

// Gives its rights back. False: the kernel refuses now.
bool end_moved(ProtectedCopy& copy) noexcept {
  const bool allowed = allow(copy.move.dst) && allow_source(copy);
  if (!allowed && !copy.is_given_up()) return false;
  copy.stage = ProtectedStage::free;
  one_less_watched();
  return true;
}

// Ends it if it is done.
bool end_if_done(ProtectedCopy& copy) noexcept {
  if (copy.stage == ProtectedStage::moving)
    if (const int result = haul_test(copy.ticket); result != 0) end_move(copy, result < 0);
  return copy.stage == ProtectedStage::moved && end_moved(copy);
}

// Where the kernel does not give the rights of one copy back, since its mapping would have to be
// split, it may once those of its neighbours are.
void end_all_done() noexcept {
  for (ProtectedCopy& copy : copies) end_if_done(copy);
}

// A child that shares this memory (vfork()) or has a copy of it that nobody knows of cannot take
// the lock. What it finds in the table stands still as long as it is about to touch the memory. The
// first waits for its parent's mover; the second has none, as haul says of the ticket, and moves
// the bytes itself.
bool serve_strange_process(std::uintptr_t address) noexcept {
  constexpr std::uint64_t patience_ns = 5'000'000'000;
  const std::uint64_t begun_ns = now_ns();
  const Bounds byte{address, address + 1};
  bool found = false;
  for (const ProtectedCopy& copy : copies) {
    if (!copy.has(byte)) continue;
    for (Backoff backoff; haul_test(copy.ticket) == 0 && now_ns() - begun_ns < patience_ns;)
      backoff.pause();
    constexpr int done = 1;
    if (haul_test(copy.ticket) != done)
      os::force_write(copy.move.to, copy.move.from, copy.move.length);
    if (copy.move.dst.overlaps(byte)) allow(copy.move.dst);
    found = true;
  }
  // (Of a source only the page that all its readers have read by now.)
  const std::uintptr_t page = address & ~(os::page_bytes - 1);
  if (found) allow({page, page + os::page_bytes});
  return found;
}

}  // namespace

bool may_protect(const Bounds& range) noexcept {
  const Held held;
  bool may = true;
  for (std::uintptr_t at = range.begin; may && at < range.end;) {
    std::uintptr_t covered = at, next = range.end;  // until where; where the next one begins
    for (const ProtectedCopy& copy : copies) {
      if (copy.is_free()) continue;
      for (const Bounds& side : {copy.move.dst, copy.move.src}) {
        if (side.begin <= at && at < side.end) covered = std::max(covered, side.end);
        if (side.begin > at) next = std::min(next, side.begin);
      }
    }
    may = covered > at || os::is_plain_memory(at, next);
    at = covered > at ? covered : next;
  }
  return may;
}

int begin_protected(const ProtectedMove& move) noexcept {
  const Held held;
  int number = -1;
  for (unsigned i = 0; i < room; ++i) {
    ProtectedCopy& other = copies[i];
    end_if_done(other);
    if (other.is_free()) {
      if (number < 0) number = static_cast<int>(i);
    } else if (other.has(move.dst) || other.move.dst.overlaps(move.src)) {
      return -1;
    }
  }
  if (number < 0 || is_forking() || no_more.load()) return -1;
  ProtectedCopy copy;
  copy.stage = ProtectedStage::begun;
  copy.move = move;
  copy.thread = os::thread_id();
  copies[number] = copy;
  one_more_watched();
  add_watched(move.dst);
  add_watched(move.src);
  return number;
}

bool take_rights(int number) noexcept {
  // (Nobody else changes an entry that has begun.)
  const ProtectedMove& move = copies[number].move;
  const auto bytes = [](const Bounds& range) { return range.end - range.begin; };
  return os::set_rights(move.src.begin, bytes(move.src), MemoryRights::read) == 0 &&
         os::set_rights(move.dst.begin, bytes(move.dst), MemoryRights::none) == 0;
}

void set_mover(int number, const haul_ticket& ticket, WayTally* tally,
               std::uint64_t begun_ns) noexcept {
  const Held held;
  ProtectedCopy& copy = copies[number];
  copy.ticket = ticket;
  copy.tally = tally;
  copy.call_ns = now_ns() - begun_ns;
  copy.stage = ProtectedStage::moving;
}

void drop_protected(int number) noexcept {
  const Held held;
  ProtectedCopy& copy = copies[number];
  end_move(copy, false);
  end_moved(copy);
}

bool serve_protected(std::uintptr_t address) noexcept {
  const Bounds byte{address, address + 1};
  if (!is_own_process()) return serve_strange_process(address);
  // Long enough to be woken rather than to look again.
  constexpr std::uint64_t slice_ns = 20'000'000;
  bool found = false;
  std::uint64_t waited_since_ns = now_ns();
  for (Backoff backoff;; backoff.pause()) {
    haul_ticket ticket{};
    bool moves = false, waits = false;
    {
      const Held held;
      const std::uint64_t now = now_ns();
      for (ProtectedCopy& copy : copies) {
        if (!copy.has(byte)) continue;
        if (!found) touches.fetch_add(1, std::memory_order_relaxed);
        found = true;
        copy.waited_ns += now - waited_since_ns;
        if (end_if_done(copy)) continue;
        waits = true;
        if (copy.stage == ProtectedStage::moved) end_all_done();
        if (copy.stage != ProtectedStage::moving) continue;
        ticket = copy.ticket;
        moves = true;
      }
      waited_since_ns = now;
    }
    if (!waits) return found;
    // (Whoever waits helps: also a mover of the program's own requests that has touched the memory,
    // and that would wait for itself otherwise.)
    if (moves) haul_wait_for(ticket, slice_ns);
  }
}

bool end_protected(const Bounds& range) noexcept {
  bool all = true;
  for (ProtectedCopy& copy : copies) {
    if (!copy.has(range) || end_if_done(copy)) continue;
    if (copy.stage == ProtectedStage::moved) end_all_done();
    all = all && copy.stage == ProtectedStage::begun && copy.thread == os::thread_id();
  }
  return all;
}

void protect_no_more() noexcept {
  no_more.store(true);
  settle_all();
}

void forget_protected() noexcept {
  for (ProtectedCopy& copy : copies) copy.stage = ProtectedStage::free;
}

std::uint64_t protected_touches() noexcept {
  return touches.load(std::memory_order_relaxed);
}

}  // namespace haul::preload
