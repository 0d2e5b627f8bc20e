// Memory that does not arrive.
#pragma once

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace e2e {

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

// Memory whose pages nobody serves; nullptr where the kernel makes none.
inline unsigned char* memory_that_does_not_arrive(std::size_t bytes) {
  const auto uffd =
      static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  uffdio_api api{};
  api.api = UFFD_API;
  if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) != 0) return nullptr;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uffdio_register range{};
  range.range.start = reinterpret_cast<std::uintptr_t>(at);
  range.range.len = bytes;
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  return ioctl(uffd, UFFDIO_REGISTER, &range) == 0 ? static_cast<unsigned char*>(at) : nullptr;
}

}  // namespace e2e
