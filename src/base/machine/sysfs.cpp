// The kernel's small text files, parsed without trust.
#include "base/machine/sysfs.hpp"

#include <limits.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/os/os.hpp"

namespace haul {

bool FileTree::read(char* text, std::size_t size, const char* format, ...) const noexcept {
  char path[PATH_MAX];
  const int head = snprintf(path, sizeof path, "%s", root_);
  if (head < 0 || static_cast<std::size_t>(head) >= sizeof path) return false;
  const std::size_t room = sizeof path - static_cast<std::size_t>(head);
  va_list arguments;
  va_start(arguments, format);
  const int tail = vsnprintf(path + head, room, format, arguments);
  va_end(arguments);
  if (tail < 0 || static_cast<std::size_t>(tail) >= room) return false;
  const ssize_t length = os::read_file(path, text, size);
  if (length <= 0) return false;
  if (text[length - 1] == '\n') text[length - 1] = '\0';
  return true;
}

bool parse_number(const char* text, unsigned long& value) noexcept {
  if (*text < '0' || *text > '9') return false;
  char* end = nullptr;
  errno = 0;
  value = strtoul(text, &end, 10);
  return errno == 0 && *end == '\0';
}

bool parse_cpu_list(const char* text, CpuSet& set) noexcept {
  set = {};
  CpuSet found;
  bool any = false;
  const char* cursor = text;
  for (;;) {
    unsigned long bounds[2];
    for (int i = 0; i < 2; ++i) {
      if (*cursor < '0' || *cursor > '9') return false;
      char* end = nullptr;
      bounds[i] = strtoul(cursor, &end, 10);  // too large a number saturates, and is ignored
      cursor = end;
      if (i == 0 && *cursor != '-') {
        bounds[1] = bounds[0];
        break;
      }
      if (i == 0) ++cursor;
    }
    if (bounds[0] > bounds[1]) return false;
    for (unsigned long cpu = bounds[0]; cpu <= bounds[1] && cpu < max_cpus; ++cpu) {
      found.add(static_cast<unsigned>(cpu));
      any = true;
    }
    if (*cursor == '\0') break;
    if (*cursor++ != ',') return false;
  }
  if (any) set = found;
  return any;
}

}  // namespace haul
