#include "preload/protect/protect.hpp"

#include <atomic>

#include "base/machine/clock.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/own_memory.hpp"
#include "base/os/pages/sealed.hpp"
#include "base/private.hpp"
#include "preload/defer/pending.hpp"
#include "preload/protect/fault_handler.hpp"
#include "preload/protect/protected.hpp"

namespace haul::preload {
namespace {

using os::page_bytes;

constexpr std::uintptr_t up(std::uintptr_t at) noexcept {
  return (at + page_bytes - 1) & ~(page_bytes - 1);
}
constexpr std::uintptr_t down(std::uintptr_t at) noexcept {
  return at & ~(page_bytes - 1);
}

// No more than whole pages of either side, so that what lies beside them is as free as before.
ProtectedMove move_of(std::uintptr_t dst, std::uintptr_t src, std::size_t length) noexcept {
  ProtectedMove move;
  move.dst = {up(dst), down(dst + length)};
  if (move.dst.begin >= move.dst.end) return {};
  const std::uintptr_t first = src + (move.dst.begin - dst), last = src + (move.dst.end - dst);
  move.src = {up(first), down(last)};
  if (move.src.begin >= move.src.end) return {};
  move.from = move.src.begin;
  move.to = move.dst.begin + (move.from - first);
  move.length = move.src.end - move.src.begin;
  return move;
}

// Does the kernel write where the program may not? Tried once a process, with a page that has been
// written and one that has not: some kernels forbid it, and some systems have no /proc.
bool try_forced_writes() noexcept {
  constexpr std::size_t bytes = 2 * page_bytes;
  void* const mapped = os::map_anonymous(bytes);
  if (mapped == nullptr) return false;
  const auto page = reinterpret_cast<std::uintptr_t>(mapped);
  auto* const words = static_cast<volatile std::uint64_t*>(mapped);
  constexpr std::size_t words_a_page = page_bytes / sizeof(std::uint64_t);
  words[0] = 1;
  const std::uint64_t word = 0x6861756c;
  bool can = os::set_rights(page, bytes, os::MemoryRights::none) == 0;
  for (const std::uintptr_t to : {page, page + page_bytes})
    can = can && os::force_write(to, reinterpret_cast<std::uintptr_t>(&word), sizeof word) ==
                     static_cast<std::int64_t>(sizeof word);
  can = os::set_rights(page, bytes, os::MemoryRights::read_write) == 0 && can && words[0] == word &&
        words[words_a_page] == word;
  os::unmap(mapped, bytes);
  return can;
}

bool can_force_writes() noexcept {
  enum : int { untried, yes, no };
  static constinit std::atomic<int> known{untried};
  if (known.load(std::memory_order_relaxed) == untried)
    known.store(try_forced_writes() ? yes : no, std::memory_order_relaxed);
  return known.load(std::memory_order_relaxed) == yes;
}

// With signals blocked: a handler that forks or gives memory back would wait for what its own
// thread has begun.
NotProtected begin(const ProtectedMove& move, WayTally* tally, std::uint64_t begun_ns) noexcept {
  int number = begin_protected(move);
  if (number < 0) {
    settle(move.dst, false);
    settle(move.src, false);
    number = begin_protected(move);
    if (number < 0) return NotProtected::no_mover;
  }
  NotProtected result = NotProtected::not_writable;
  if (take_rights(number)) {
    // A device that has this memory registered reaches it whatever its rights.
    haul_private_tell_of_change(move.dst.begin, move.dst.end);
    haul_private_tell_of_change(move.src.begin, move.src.end);
    haul_ticket ticket;
    if (haul_private_force_copy(move.to, move.from, move.length, &ticket)) {
      set_mover(number, ticket, tally, begun_ns);
      return NotProtected::protected_;
    }
    result = NotProtected::no_mover;
  }
  drop_protected(number);
  return result;
}

}  // namespace

NotProtected protect(std::uintptr_t dst, std::uintptr_t src, std::size_t length,
                     void* (*move_bytes)(void*, const void*, std::size_t),
                     WayTally* tally) noexcept {
  const std::uint64_t begun_ns = now_ns();
  const ProtectedMove move = move_of(dst, src, length);
  if (move.length == 0 || !may_protect(move.dst) || !may_protect(move.src))
    return NotProtected::not_private;
  // (What the program maps meanwhile may leave no room for memory that it may write.)
  if (os::data_limit() != UINT64_MAX || !can_force_writes()) return NotProtected::not_writable;
  if (!ready_to_handle()) return NotProtected::handled;
  const auto move_part = [&](std::uintptr_t from, std::uintptr_t to) {
    if (from < to)
      move_bytes(reinterpret_cast<void*>(from), reinterpret_cast<const void*>(src + (from - dst)),
                 to - from);
  };
  // Before anything is protected. (What another copy has pending there is waited for.)
  move_part(dst, move.to);
  move_part(move.to + move.length, dst + length);
  os::SignalMask mask;
  os::block_signals(&mask);
  const NotProtected result = begin(move, tally, begun_ns);
  os::restore_signals(mask);
  return result;
}

}  // namespace haul::preload
