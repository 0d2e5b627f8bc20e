#include "base/log.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/knobs.hpp"
#include "base/os/keep_errno.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul {

namespace {

constexpr std::size_t line_bytes = 640;

const char* level_name(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::error: return "error";
    case LogLevel::warning: return "warning";
    case LogLevel::info: return "info";
    case LogLevel::debug: return "debug";
  }
  return "debug";
}

}  // namespace

bool log_enabled(LogLevel level) noexcept {
  return static_cast<std::uint64_t>(level) <= knob_number(Knob::log_level);
}

void log(LogLevel level, const char* format, ...) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  if (!log_enabled(level)) return;
  char line[line_bytes];
  // One byte stays free for the newline.
  constexpr std::size_t text_end = sizeof line - 1;
  const int head = snprintf(line, text_end, "haul: %s: ", level_name(level));
  if (head < 0) return;
  std::size_t length = static_cast<std::size_t>(head);
  va_list arguments;
  va_start(arguments, format);
  const int body = vsnprintf(line + length, text_end - length, format, arguments);
  va_end(arguments);
  if (body < 0) return;
  const std::size_t room = text_end - length - 1;  // vsnprintf keeps one byte for its NUL
  length += static_cast<std::size_t>(body) < room ? static_cast<std::size_t>(body) : room;
  // A value from the environment must not break the line or steer a terminal.
  for (std::size_t i = 0; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte < 0x20 || byte == 0x7f) line[i] = '?';
  }
  line[length++] = '\n';
  ssize_t written;
  do {
    written = write(STDERR_FILENO, line, length);
  } while (written < 0 && errno == EINTR);
}

}  // namespace haul
