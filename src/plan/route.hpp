// Who moves a request's bytes: the caller at once, a thread of this process, or the node's service.
//
// This file is the one place where that rule is written. Four askers share it: the short road of
// haul_copy() and haul_fill() and the door of haul_submit() (mover/short_road.hpp), which read the
// thresholds from the gate, word by word and only those that the answer needs; and make_plan(),
// which serves the long road and haul_explain() and reads them from its inputs. So the thresholds
// are a template over what a word is, and the function is inline: on the short road no more is left
// of it than the loads and comparisons themselves.
//
// The thresholds are figures of handing over, computed when a mover's state or distance changes
// (thresholds.hpp), never here. Below them comes what concerns one request alone: its length, the
// burst that it belongs to, and, where these leave it open, what its bytes are like (Access).
//
// What is to come enters here: a device is one more Candidate with thresholds of its own in the
// set (from which length on its start-up pays, and whether the caller or a mover drives it).
#pragma once

#include <cstdint>

#include "base/extent.hpp"

namespace haul::plan {

enum class Mover : std::uint8_t { caller, thread, service };

// The dedicated core that the request would go to, if to any. Memory that the service has mapped is
// for the service; as far as the short road goes, all other memory is for a thread (make_plan()
// also knows where the service reaches it through the kernel).
enum class Candidate : std::uint8_t { thread, service, sleeping_service };

// What is known of a request's bytes besides their number: what a caller that moves them itself
// would wait for.
enum class Access : std::uint8_t {
  cached,     // nothing, as far as that was looked at
  in_memory,  // the source, which lies in no cache
  new_pages,  // the destination, which has no pages yet
};

// What decided. route() answers with one of the last five; the others are make_plan()'s, and come
// before any length is looked at.
enum class Reason : std::uint8_t {
  granted,          // only the service reaches memory that another process has granted
  no_core,          // neither a thread nor the service can take it
  other_rights,     // the asker's rights are not the movers'
  held,             // a fork or a shutdown is under way
  ring_full,        // a thread that asks for more does some itself
  inline_asked,     // HAUL_INLINE
  inline_set,       // HAUL_PLAN_MOVER=caller
  dedicated_asked,  // HAUL_DEDICATED
  dedicated_set,    // HAUL_PLAN_MOVER=thread or service
  fenced,           // behind a fence the caller would have to wait
  staged,           // memory of a device's own, whose driver may have to copy as much as a caller
  large,            // alone, or with the burst that it belongs to
  in_memory,        // between the thresholds, and its source lies in memory
  new_pages,        // between the thresholds, and its destination has no pages yet
  small,            // below both thresholds
  cached,           // between the thresholds, and its source is cached
};

struct Route {
  Mover mover = Mover::caller;
  Reason reason = Reason::small;
};

// From which length on handing over pays; UINT64_MAX: it never does. piece_from and inline_below
// are at most mover_from. `Word` is a std::uint64_t, or what reads as one.
template <class Word>
struct BasicThresholds {
  Word inline_below{};  // if its source is known to lie in memory, or its destination to be new
  Word mover_from{};    // wherever it lies: even in the caller's nearest cache that it fits
  Word piece_from{};    // if, with what the thread has submitted and not asked for since, it
                        // reaches mover_from: together they are worth it
};
using Thresholds = BasicThresholds<std::uint64_t>;
inline constexpr Thresholds never{UINT64_MAX, UINT64_MAX, UINT64_MAX};
inline constexpr Thresholds always{0, 0, 0};

// All that a decision reads, in the movers' present state. The gate has members of the same names.
struct ThresholdSet {
  Thresholds own = never;     // a thread of this process
  Thresholds mapped = never;  // the node's service, awake, for memory that it has mapped
  // The same while it sleeps: it is woken for large copies only, whatever else speaks for waking
  // it.
  std::uint64_t mapped_asleep_from = UINT64_MAX;
  // The mover sleeps, or has not been started: what inline_below and mover_from would be if it were
  // awake. Otherwise never. (piece_from is not read.)
  Thresholds worth = never;
};

// The bytes that a request counts as, in every comparison with a threshold and in every sum. A fill
// reads nothing: it costs its caller about as much as a copy of half its length.
constexpr std::uint64_t counted_bytes(Operation operation, std::uint64_t length) noexcept {
  return operation == Operation::fill ? length / 2 : length;
}

// The rule, for one dedicated core and the thresholds that hold for it.
template <class Words, class Probe>
constexpr Route weigh(const Words& from, Mover mover, std::uint64_t bytes, std::uint64_t burst,
                      Probe access) noexcept {
  if (burst >= from.mover_from && bytes >= from.piece_from) return {mover, Reason::large};
  if (bytes < from.inline_below) return {Mover::caller, Reason::small};
  switch (access()) {
    case Access::in_memory: return {mover, Reason::in_memory};
    case Access::new_pages: return {mover, Reason::new_pages};
    case Access::cached: break;
  }
  return {Mover::caller, Reason::cached};
}

// Decides. `bytes` are the request's counted bytes, `burst` those of all that the thread submitted
// since it last looked at a ticket, this request's included (so burst >= bytes). `access` finds the
// request's Access; it is called at most once, and only if the answer matters.
template <class Figures, class Probe>
constexpr Route route(const Figures& figures, Candidate candidate, std::uint64_t bytes,
                      std::uint64_t burst, Probe access) noexcept {
  if (candidate == Candidate::thread)
    return weigh(figures.own, Mover::thread, bytes, burst, access);
  if (candidate == Candidate::service)
    return weigh(figures.mapped, Mover::service, bytes, burst, access);
  if (bytes >= figures.mapped_asleep_from) return {Mover::service, Reason::large};
  return {Mover::caller, Reason::small};
}

// Would these bytes, which the caller moves itself, have been worth an awake mover? Decided by the
// same thresholds, without the burst: what that would have added was counted when it was moved.
template <class Figures, class Probe>
constexpr bool is_worth_waking(const Figures& worth, std::uint64_t bytes, Probe access) noexcept {
  if (bytes < worth.inline_below) return false;
  return bytes >= worth.mover_from || access() != Access::cached;
}

}  // namespace haul::plan
