// With whose rights a mover may act. Memory of another process is reached with the rights of the
// thread that asked, and memory behind a protection key only by threads that have opened the key: a
// thread whose rights differ from the movers' carries out its requests itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/extent.hpp"
#include "base/machine/cpu.hpp"
#include "base/os/rights.hpp"

namespace haul {

// ---- another process's memory ----

// Rights get small numbers, equal ones the same, so that a request can carry them. Returns the
// calling thread's; nobodys if 63 different ones have been seen and these are others. Three system
// calls; lock-free.
using RightsNumber = std::uint8_t;
inline constexpr RightsNumber nobodys = 0;
RightsNumber rights_number() noexcept;
RightsNumber number_of(const os::Rights& rights) noexcept;

// A mover notes the rights that it has, at each start and before each piece of another process's
// memory.
void note_mover_rights(RightsNumber number) noexcept;
RightsNumber mover_rights() noexcept;  // nobodys: no mover has said so yet
void forget_mover_rights() noexcept;   // in a child, which has no mover

// May the calling thread work on a request that was made with these rights?
inline bool may_act_for(RightsNumber asker) noexcept {
  return asker != nobodys && rights_number() == asker;
}

// ---- protection keys ----

// The rule: a thread that has opened other keys than the movers keeps its copies. `keyed`: the CPU
// has keys, and they are switched on. (Also if it has opened fewer: what the caller may not touch
// must not be copied for it.)
constexpr bool keys_part(bool keyed, std::uint32_t mine, std::uint32_t movers) noexcept {
  return keyed && mine != movers;
}

// The keys that the movers have opened, as each mover found them when it began; one thread makes
// the movers, and they inherit its keys. `keyed` stays false where the CPU has no keys; the gate's
// line then tells each submit so (Gate::by_keys).
struct MoverKeys {
  std::atomic<bool> keyed{false};
  std::atomic<std::uint32_t> opened{0};
};
extern constinit MoverKeys mover_keys;

void note_mover_keys() noexcept;

// Do the calling thread and this process's movers differ in what memory they may touch?
inline bool keyed_apart() noexcept {
  return mover_keys.keyed.load(std::memory_order_relaxed) &&
         keys_part(true, opened_keys(), mover_keys.opened.load(std::memory_order_relaxed));
}

}  // namespace haul
