// The failure ledger keeps how a request failed until somebody has looked: slots are reused, and
// failures outlive them here.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace haul {

struct Failure {
  Code code = Code::ok;
  std::uint64_t good_bytes = 0;
};

// Failures remembered at once. When more are unobserved, some are forgotten: see ledger_forgot().
inline constexpr unsigned ledger_capacity = 65536;

// Notes that a request failed at offset good_bytes; of several failures of one request the lowest
// offset counts. Takes a lock; maps memory once.
void ledger_record(std::uint32_t ring, std::uint64_t seq, Code code,
                   std::uint64_t good_bytes) noexcept;

// True and *failure, or false if none is known. Async-signal-safe, as are all of these.
bool ledger_find(std::uint32_t ring, std::uint64_t seq, Failure* failure) noexcept;

// Notes that somebody has looked: the failure may be dropped when room is needed (it is kept for a
// while, so that progress can be asked for after a wait).
void ledger_observe(std::uint32_t ring, std::uint64_t seq) noexcept;

// Is anything recorded? One relaxed load; for test's path with an old ticket.
bool ledger_empty() noexcept;
// Was a failure of this ring with this or a later seq forgotten? Then a request that is not found
// may have failed.
bool ledger_forgot(std::uint32_t ring, std::uint64_t seq) noexcept;
std::uint64_t ledger_unobserved() noexcept;

// For a child of fork, which inherits the ledger but not the thread that may hold its lock. False
// if a thread was changing the table at the fork: the table then starts empty, and ledger_forget()
// must be called for each ring.
bool ledger_after_fork_child() noexcept;
// Failures of this ring up to this seq may have been forgotten.
void ledger_forget(std::uint32_t ring, std::uint64_t seq) noexcept;
// For a bare clone()'s child: drops the parent's failures.
void remake_ledger() noexcept;

}  // namespace haul
