#include "base/os/own_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/machine/pages.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

constexpr int protection_of(MemoryRights rights) noexcept {
  switch (rights) {
    case MemoryRights::none: return PROT_NONE;
    case MemoryRights::read: return PROT_READ;
    default: return PROT_READ | PROT_WRITE;
  }
}

}  // namespace

int set_rights(std::uintptr_t begin, std::size_t bytes, MemoryRights rights) noexcept {
  long result = SYS_mprotect;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(begin), "S"(bytes), "d"(static_cast<long>(protection_of(rights)))
               : "rcx", "r11", "memory");
  return static_cast<int>(result);
}

bool may_touch(std::uintptr_t address, bool write) noexcept {
  constexpr int populate_read = 22, populate_write = 23;  // <sys/mman.h> of newer libraries
  void* const page = reinterpret_cast<void*>(address & ~(page_bytes - 1));
  return advise(page, page_bytes, write ? populate_write : populate_read) == 0;
}

std::int64_t force_write(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  // (The main thread's, /proc/self, is gone when that has ended.)
  const int fd = open("/proc/thread-self/mem", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  Descriptor memory = Descriptor::of(above_streams(fd));
  if (!memory.valid()) return -EMFILE;
  std::size_t done = 0;
  std::int64_t failure = -EIO;
  while (done < bytes) {
    const ssize_t now = pwrite(memory.number(), reinterpret_cast<const void*>(from + done),
                               bytes - done, static_cast<off_t>(to + done));
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) failure = -errno;
    if (now <= 0) break;
    done += static_cast<std::size_t>(now);
  }
  memory.close();
  return done == 0 && bytes != 0 ? failure : static_cast<std::int64_t>(done);
}

}  // namespace haul::os
