#include "base/os/pages/userfault.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
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

// <linux/userfaultfd.h> of Linux 6.4; older headers lack it.
constexpr std::uint64_t protect_missing_pages = 1u << 13;  // UFFD_FEATURE_WP_UNPOPULATED
constexpr std::uint64_t features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMAP |
                                   UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP |
                                   protect_missing_pages;

// And of Linux 6.8.
struct MoveArgument {
  std::uint64_t to, from, bytes, mode;
  std::int64_t moved;
};

int control(int fd, unsigned long request, void* argument) noexcept {
  const KeepErrno keep;
  return ioctl(fd, request, argument) == 0 ? 0 : -errno;
}

}  // namespace

namespace {

int agree(int fd, std::uint64_t wanted) noexcept {
  uffdio_api api{UFFD_API, wanted, 0};
  if (const int result = control(fd, UFFDIO_API, &api); result != 0) {
    ::close(fd);
    return result;
  }
  return above_streams(fd);
}

}  // namespace

int open_userfault() noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  constexpr int flags = O_CLOEXEC | O_NONBLOCK;
  int fd = static_cast<int>(syscall(SYS_userfaultfd, flags));
  if (fd < 0) {
    const int refused = -errno;
    const int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    if (device < 0) return refused;
    fd = ioctl(device, USERFAULTFD_IOC_NEW, flags);
    ::close(device);
    if (fd < 0) return refused;
  }
  return agree(fd, features);
}

int open_memory_events() noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  if (fd < 0) return -errno;
  return agree(static_cast<int>(fd),
               UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP);
}

int watch(int fd, std::uintptr_t begin, std::size_t bytes, WatchFor what) noexcept {
  uffdio_register range{};
  range.range = {begin, bytes};
  range.mode = what == WatchFor::missing ? UFFDIO_REGISTER_MODE_MISSING : UFFDIO_REGISTER_MODE_WP;
  return control(fd, UFFDIO_REGISTER, &range);
}

int unwatch(int fd, std::uintptr_t begin, std::size_t bytes) noexcept {
  uffdio_range range{begin, bytes};
  const int result = control(fd, UFFDIO_UNREGISTER, &range);
  wake_held(fd, begin, bytes);
  return result;
}

void wake_held(int fd, std::uintptr_t begin, std::size_t bytes) noexcept {
  uffdio_range range{begin, bytes};
  control(fd, UFFDIO_WAKE, &range);
}

int protect_writes(int fd, std::uintptr_t begin, std::size_t bytes, bool protect) noexcept {
  uffdio_writeprotect range{{begin, bytes}, protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0ull};
  return control(fd, UFFDIO_WRITEPROTECT, &range);
}

std::int64_t provide(int fd, std::uintptr_t to, std::uintptr_t from, std::size_t bytes) noexcept {
  uffdio_copy pages{to, from, bytes, 0, 0};
  const int result = control(fd, UFFDIO_COPY, &pages);
  if (pages.copy > 0) return pages.copy;
  return result != 0 ? result : static_cast<std::int64_t>(bytes);
}

std::int64_t move_pages(int fd, std::uintptr_t to, std::uintptr_t from,
                        std::size_t bytes) noexcept {
  MoveArgument pages{to, from, bytes, 0, 0};
  const int result = control(fd, _IOWR(UFFDIO, 0x05, MoveArgument), &pages);
  if (pages.moved > 0) return pages.moved;
  return result != 0 ? result : static_cast<std::int64_t>(bytes);
}

bool next_event(int fd, FaultEvent* event) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  uffd_msg message;
  while (read(fd, &message, sizeof message) == sizeof message) {
    switch (message.event) {
      case UFFD_EVENT_PAGEFAULT: {
        const bool write = (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP) != 0;
        const std::uintptr_t page = message.arg.pagefault.address & ~(page_bytes - 1);
        *event = {write ? FaultEvent::Kind::write : FaultEvent::Kind::missing, page,
                  page + page_bytes, 0};
        return true;
      }
      case UFFD_EVENT_REMAP:
        *event = {FaultEvent::Kind::moved, message.arg.remap.from,
                  message.arg.remap.from + message.arg.remap.len, message.arg.remap.to};
        return true;
      case UFFD_EVENT_REMOVE:
      case UFFD_EVENT_UNMAP:
        *event = {message.event == UFFD_EVENT_REMOVE ? FaultEvent::Kind::removed
                                                     : FaultEvent::Kind::unmapped,
                  message.arg.remove.start, message.arg.remove.end, 0};
        return true;
      default: break;
    }
  }
  return false;
}

bool any_event(int fd) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  pollfd events{fd, POLLIN, 0};
  constexpr timespec at_once{};
  return ppoll(&events, 1, &at_once, nullptr) > 0;
}

bool changes_wait(int fd) noexcept {
  // Of this call, which provides nothing, the kernel looks at the rest only where none waits.
  uffdio_copy nothing{};
  return control(fd, UFFDIO_COPY, &nothing) == -EAGAIN;
}

void await_events(int fd, std::uint64_t timeout_ns) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  pollfd events{fd, POLLIN, 0};
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  ppoll(&events, 1, &timeout, nullptr);
}

}  // namespace haul::os
