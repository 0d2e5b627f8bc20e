// Grants: memory of this process that others may name in their requests to the node's service, and
// memory of others that this process may name. A capability is a descriptor (whose memory: a sealed
// memfd that holds the granting process's 128-bit key) and an index (which part of it: 64 bits that
// cannot be guessed). The service checks both; no process ever maps another's memory or names its
// pid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"
#include "base/extent.hpp"
#include "request/wire.hpp"

namespace haul {

inline constexpr std::size_t max_grants = 4096;

struct Capability {
  // Haul's own, the same for every grant of the process (until the program closes it: later grants
  // then come with another, which is as good).
  int fd = -1;
  std::uint64_t index = 0;
};

// Lets others name [address, address + length). rights: wire::may_read | wire::may_write. Waits for
// a service to be attached. not_supported: there is none; no_memory: max_grants, descriptors.
Expected<Capability> share(std::uintptr_t address, std::size_t length,
                           std::uint32_t rights) noexcept;

// Takes a grant back. When it returns ok, nothing reads or writes there for another process any
// more. invalid: not a grant of this process; timed_out: the service does not answer, and may still
// be using the memory.
Code unshare(std::uint64_t index, Error* error) noexcept;

// A space for memory that another process has granted; *length: how many bytes. permission: the
// service knows no such grant (withdrawn, or its process is gone).
Expected<Space> open_grant(const Capability& grant, std::size_t* length) noexcept;
// Tells the service that a space of open_grant() is closed.
void forget_grant(Space space) noexcept;

// ---- the link's (link.cpp) ----
// This process's key, made when it is first asked for.
void grant_key(std::uint8_t (&key)[wire::key_bytes]) noexcept;
// Is anything granted now, or any grant of others bound?
bool has_grants() noexcept;
// Tells a new service what the former one knew.
void resend_grants() noexcept;
// Has the service confirmed what resend_grants() told it? The link's thread only.
bool bindings_are_known() noexcept;
void answer_bound(const wire::Bound& bound) noexcept;
void answer_withdrawn(const wire::Withdrawn& withdrawn) noexcept;
// The service is gone: threads that wait for an answer get none.
void fail_requests() noexcept;

// For a child of fork, which has granted nothing, but may still name what it could name of others'
// memory.
void forget_grants() noexcept;

}  // namespace haul
