// The failure ledger: what went wrong with a request, kept until somebody has looked. Slots are
// reused; failures outlive them here.
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace haul {

struct Failure {
  Code code = Code::ok;
  std::uint64_t good_bytes = 0;
};

// Failures remembered at once. When more are unobserved some are forgotten, see ledger_forgot().
inline constexpr unsigned ledger_capacity = 65536;

// Notes that a request failed at offset good_bytes; of several failures of one request the lowest
// offset counts. Takes a lock; maps memory once.
void ledger_record(std::uint32_t ring, std::uint64_t seq, Code code,
                   std::uint64_t good_bytes) noexcept;

// True and *failure, or false: none is known. Signal-safe, as all of these.
bool ledger_find(std::uint32_t ring, std::uint64_t seq, Failure* failure) noexcept;

// Somebody has looked: it may be dropped when room is needed (it is kept for a while, so that
// progress can be asked after wait).
void ledger_observe(std::uint32_t ring, std::uint64_t seq) noexcept;

// Is anything recorded? One relaxed load; for test's path with an old ticket.
bool ledger_empty() noexcept;
// Was a failure of this ring with this or a later seq forgotten? Then a request that is not found
// may have failed.
bool ledger_forgot(std::uint32_t ring, std::uint64_t seq) noexcept;
std::uint64_t ledger_unobserved() noexcept;

// In a child of fork, which inherits it: whoever held the lock is not here. False if a thread was
// changing the table just then: it begins anew, and ledger_forget() is to be called for each ring.
bool ledger_after_fork_child() noexcept;
// Failures of this ring up to this seq may have been forgotten.
void ledger_forget(std::uint32_t ring, std::uint64_t seq) noexcept;
// In a child by a bare clone: the parent's failures are none of ours.
void remake_ledger() noexcept;

}  // namespace haul
