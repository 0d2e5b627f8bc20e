// Reads /proc/PID/task by the system call: readdir() would allocate.
#include "base/thread/tasks.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/os/keep_errno.hpp"
#include "base/os/raw_file.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

// As the kernel lays it out.
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short length;
  unsigned char type;
  char name[1];
};

}  // namespace

bool for_each_task(const char* directory, bool (*see)(pid_t thread, void* context),
                   void* context) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = raw_open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  alignas(8) char entries[2048];
  long bytes = 0;
  bool goes_on = true, seen = false;
  while (goes_on && (bytes = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0) {
    for (long at = 0; goes_on && at < bytes;) {
      DirectoryEntry entry;
      std::memcpy(&entry, entries + at, offsetof(DirectoryEntry, name));
      const char* name = entries + at + offsetof(DirectoryEntry, name);
      at += entry.length;
      if (name[0] == '.') continue;
      seen = true;
      goes_on = see(static_cast<pid_t>(std::strtol(name, nullptr, 10)), context);
    }
  }
  raw_close(fd);
  return bytes >= 0 && seen;
}

}  // namespace haul::os
