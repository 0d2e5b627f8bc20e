// With whose rights a mover may act. Memory of another process is reached with the rights of the
// thread that asked, and memory behind a protection key only by threads that have opened the key:
// a thread whose rights differ from the movers' does its requests itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/cpu.hpp"
#include "base/extent.hpp"
#include "base/rights.hpp"

namespace haul {

// ---- another process's memory ----

// Rights get small numbers, the same for equal ones, so that a request can carry them. The calling
// thread's; nobodys: 63 different ones have been seen, and these are others. Three system calls;
// lock-free.
using RightsNumber = std::uint8_t;
inline constexpr RightsNumber nobodys = 0;
RightsNumber rights_number() noexcept;
RightsNumber number_of(const os::Rights& rights) noexcept;

// Movers say whose rights they have: at each start, and before each piece of another's memory.
void note_mover_rights(RightsNumber number) noexcept;
RightsNumber mover_rights() noexcept;  // nobodys: no mover has said so yet
void forget_mover_rights() noexcept;   // in a child, which has no mover

// May the calling thread work on a request that was made with these rights?
inline bool may_act_for(RightsNumber asker) noexcept {
  return asker != nobodys && rights_number() == asker;
}

// ---- protection keys ----

// The rule: a thread that has opened other keys than the movers keeps its copies. `keyed`: the CPU
// has keys, and they are switched on. (Fewer keys too: what the caller may not touch, it must not
// have copied.)
constexpr bool keys_part(bool keyed, std::uint32_t mine, std::uint32_t movers) noexcept {
  return keyed && mine != movers;
}

// What the movers have opened, as each of them found it when it began; they are made by one thread
// and inherit its keys. `keyed` stays false without keys; the gate's line then says so to each
// submit (Gate::by_keys).
struct MoverKeys {
  std::atomic<bool> keyed{false};
  std::atomic<std::uint32_t> opened{0};
};
extern constinit MoverKeys mover_keys;

void note_mover_keys() noexcept;

// May a mover of this process not touch what the calling thread may, or the other way round?
inline bool keyed_apart() noexcept {
  return mover_keys.keyed.load(std::memory_order_relaxed) &&
         keys_part(true, opened_keys(), mover_keys.opened.load(std::memory_order_relaxed));
}

}  // namespace haul
