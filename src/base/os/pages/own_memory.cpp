#include "base/os/pages/own_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/machine/pages.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"
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

// Does the system count what is mapped, rather than what is used? Where it does not say, it does
// not.
bool system_counts_mappings() noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  Descriptor file = fd < 0 ? Descriptor() : Descriptor::of(above_streams(fd));
  char mode = '0';
  const bool known = file.valid() && read(file.number(), &mode, 1) == 1;
  file.close();
  return known && mode == '2';
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

bool addresses_are_limited() noexcept {
  enum : int { unknown, yes, no };
  static constinit std::atomic<int> counted{unknown};
  if (counted.load(std::memory_order_relaxed) == unknown)
    counted.store(system_counts_mappings() ? yes : no, std::memory_order_relaxed);
  return counted.load(std::memory_order_relaxed) == yes || address_space_limit() != UINT64_MAX ||
         data_limit() != UINT64_MAX;
}

std::int64_t copy_own(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) noexcept {
  // A piece is still in the cache when it is written, and far below what the kernel copies by one
  // call.
  constexpr std::size_t piece_bytes = std::size_t{256} << 10;
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t wanted = std::min(piece_bytes, bytes - done);
    const iovec here{reinterpret_cast<void*>(to + done), wanted};
    const iovec source{reinterpret_cast<void*>(from + done), wanted};
    const ssize_t now = read_process(process_id(), &here, 1, &source, 1);
    if (now <= 0) return done != 0 ? static_cast<std::int64_t>(done) : now < 0 ? now : -EFAULT;
    done += static_cast<std::size_t>(now);
  }
  return static_cast<std::int64_t>(bytes);
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
    const ssize_t now = pwrite(memory.get(), reinterpret_cast<const void*>(from + done),
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
