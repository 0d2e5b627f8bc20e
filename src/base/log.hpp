// Diagnostics on standard error, at or below the level of the knob HAUL_LOG_LEVEL.
#pragma once

namespace haul {

enum class LogLevel : int { error = 0, warning = 1, info = 2, debug = 3 };

// Writes one line, "haul: level: text", by a single write(2). Does not allocate, take a lock, or
// change errno.
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...) noexcept;

bool log_enabled(LogLevel level) noexcept;

}  // namespace haul
