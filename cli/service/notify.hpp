// What a service tells systemd (sd_notify(3)): one datagram each to the socket that NOTIFY_SOCKET
// names. Where that is not set, nothing is said.
#pragma once

#include <cstdint>
#include <string>

namespace haul::cli {

// "READY=1", "STOPPING=1", "WATCHDOG=1". Never waits; what does not arrive is lost.
void notify_manager(const std::string& state) noexcept;

// Within which time the unit's WatchdogSec= wants to hear "WATCHDOG=1" from this process; 0: it
// does not.
std::uint64_t watchdog_ns();

}  // namespace haul::cli
