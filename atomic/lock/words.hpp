// The words of a lock, and what their bits say. docs/design/atomic-locks.md has the protocol.
//
// At home: `state` is the lock, {epoch 20, count 36, beat 7, held 1}: a number that only ever
// grows, so that a member that finds it as it was knows that nothing has happened in between. Beat
// tells that the holder is alive, and carries into count. `tail` names the last node of the queue.
// In each member's window: `next` names the node behind its own, `waiting` is what it waits at,
// `hint` the state in which the granting member holds the lock. (Paper 002, IV: the lock variable,
// next and locked.)
#pragma once

#include <cstdint>

namespace haul::atomics::lock {

// ---- state ----
inline constexpr std::uint64_t held = 1;
inline constexpr std::uint64_t beat = 2, beats = 0xfe;
inline constexpr unsigned count_shift = 8, epoch_shift = 44;
inline constexpr std::uint64_t one_holder = std::uint64_t{1} << count_shift;

constexpr bool is_held(std::uint64_t state) noexcept {
  return (state & held) != 0;
}
constexpr std::uint64_t epoch_of(std::uint64_t state) noexcept {
  return state >> epoch_shift;
}
// How many have held it before, over all epochs; a beat that carries counts as one.
constexpr std::uint64_t holders_of(std::uint64_t state) noexcept {
  return (state >> count_shift) & ((std::uint64_t{1} << (epoch_shift - count_shift)) - 1);
}
// The fencing token of whoever holds the lock in this (held) state: from 1 on.
constexpr std::uint64_t token_of(std::uint64_t state) noexcept {
  return (state >> count_shift) + 1;
}
constexpr std::uint64_t released(std::uint64_t state) noexcept {
  return (state & ~(held | beats)) + one_holder;
}
constexpr std::uint64_t passed_on(std::uint64_t state) noexcept {
  return released(state) | held;
}
// Beat 0 is a new holder's alone: no value of the state is made by two members.
constexpr std::uint64_t renewed(std::uint64_t state) noexcept {
  return state + ((state & beats) == beats ? 2 * beat : beat);
}
// Whether the holder of the one state may have made the other by renewing, although the count is
// different.
constexpr bool may_have_carried(std::uint64_t from, std::uint64_t to) noexcept {
  return is_held(from) && is_held(to) && (from & beats) > beats / 2 && (to & beats) != 0 &&
         to >> count_shift == (from >> count_shift) + 1;
}
// Taken from a holder whose lease is over.
constexpr std::uint64_t stolen(std::uint64_t state) noexcept {
  return passed_on(state) + (std::uint64_t{1} << epoch_shift);
}

// ---- references to nodes: {tag 48, rank + 1 16}; 0: none ----
// A member numbers its nodes by tags, so that what was meant for an earlier one misses.
constexpr std::uint64_t reference(std::uint64_t tag, unsigned rank) noexcept {
  return tag << 16 | (rank + 1);
}
constexpr std::uint64_t tag_of(std::uint64_t word) noexcept {
  return word >> 16;
}
constexpr unsigned rank_of(std::uint64_t reference) noexcept {
  return static_cast<unsigned>(reference & 0xffff) - 1;
}
// `next` of a node to which no other is linked.
constexpr std::uint64_t nobody(std::uint64_t tag) noexcept {
  return tag << 16;
}
constexpr bool is_linked(std::uint64_t next) noexcept {
  return (next & 0xffff) != 0;
}

// ---- waiting: {tag 48, phase 16} ----
enum WaiterPhase : std::uint64_t {
  idle = 0,
  waits = 1,
  granted = 2,
  abandoned = 3,  // its member has given up: the lock goes to the next, or it comes back
  skipped = 4,    // ... and was passed over: the node is in no queue any more
  requeue = 5     // the queue is broken in front of it: it is the head, or must queue again
};
constexpr std::uint64_t waiting(std::uint64_t tag, WaiterPhase phase) noexcept {
  return tag << 16 | phase;
}
constexpr WaiterPhase phase_of(std::uint64_t word) noexcept {
  return static_cast<WaiterPhase>(word & 0xffff);
}

// Where each word lies, from the place's address.
struct Home {
  static constexpr std::uint64_t state = 0, tail = 8;
};
struct QueueNode {
  static constexpr std::uint64_t next = 0, waiting = 8, hint = 16;
};

}  // namespace haul::atomics::lock
