// This process's link to the node's service (service/): made when a dedicated core is wanted,
// tended by a thread that sleeps on the socket, and given up when the service is gone. Paper 000,
// III-B.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/error.hpp"

namespace haul {

// Has the link's thread look for a service, if none is attached: one connect() a place, every 200
// ms at first and every 5 s while there is none. True if a service is attached, or may be just
// being attached. Waits for nothing and makes no thread: for movers. Never looks with
// HAUL_SERVICE_USE=off, HAUL_PLAN_MOVER=caller or thread.
bool ask_for_service() noexcept;

// Makes the link's thread, which that needs.
void prepare_to_look() noexcept;

// For the program's threads: makes the thread, and waits for the answer until patience_ns after the
// look began.
inline constexpr std::uint64_t submit_patience_ns = 1'000'000, wake_patience_ns = 100'000'000;
bool look_for_service(std::uint64_t patience_ns = submit_patience_ns) noexcept;

// Looks at once, and waits up to timeout_ms until a service is attached. not_supported: none is.
Code await_service(unsigned timeout_ms, Error* error) noexcept;

// Ends the link before the process exits, and waits for that until deadline_ns (on now_ns()'s
// clock); then it leaves the link as it is, and a look that a file system stalls. at_rest: the
// service holds nothing of this process any more. Blocks no signal while it waits.
void leave_service(std::uint64_t deadline_ns, bool at_rest) noexcept;

// For a child of fork, which has no link: its first request for a dedicated core looks for a
// service.
void forget_service_link() noexcept;
// For a bare clone()'s child: it never gets a link, since glibc cannot be relied on to make threads
// there.
void forbid_service_link() noexcept;

// Runs on the link's thread when the link is attached for the first time: tune/ loads stored
// figures there.
using ServiceHook = void (*)();
void on_service_attached(ServiceHook hook) noexcept;
// Runs on the link's thread each time that its work is over: mover/ ends threads there that nobody
// needs.
void on_link_at_rest(ServiceHook hook) noexcept;

enum class ServiceState : std::uint32_t { none = 0, awake = 1, asleep = 2 };
struct ServiceStatus {
  ServiceState state = ServiceState::none;
  int pid = -1;  // in the service's own pid namespace
  bool reaches_memory = false;
  std::uint64_t chunks = 0;  // of this process that it has moved
  char sentence[Error::sentence_bytes] = {};
};
void service_status(ServiceStatus* status) noexcept;

}  // namespace haul
