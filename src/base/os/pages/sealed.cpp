#include "base/os/pages/sealed.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/machine/pages.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {

namespace {

std::uint64_t soft_limit(__rlimit_resource resource) noexcept {
  const KeepErrno keep;
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

}  // namespace

int make_sealed(const char* name, std::size_t bytes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  if (bytes > file_size_limit()) return -EFBIG;
  const int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return -errno;
  const int fd = above_streams(made);
  if (fd < 0) return fd;
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int error = errno;
    close(fd);
    return -error;
  }
  return fd;
}

std::uint64_t file_size_limit() noexcept {
  return soft_limit(RLIMIT_FSIZE);
}

std::uint64_t address_space_limit() noexcept {
  return soft_limit(RLIMIT_AS);
}

std::uint64_t data_limit() noexcept {
  return soft_limit(RLIMIT_DATA);
}

std::uint64_t address_space_left() noexcept {
  const std::uint64_t limit = address_space_limit();
  if (limit == UINT64_MAX) return limit;
  char text[128] = {};
  // If that cannot be read, it assumes that half is in use.
  const bool known = read_file("/proc/thread-self/statm", text, sizeof text - 1) > 0;
  std::uint64_t pages = 0;
  for (const char* at = text; *at >= '0' && *at <= '9'; ++at)
    pages = pages * 10 + static_cast<std::uint64_t>(*at - '0');
  const std::uint64_t in_use = known ? pages * page_bytes : limit / 2;
  return limit - std::min(limit, in_use);
}

bool locks_new_memory() noexcept {
  const KeepErrno keep;
  void* const page = map_anonymous(page_bytes);
  if (page == nullptr) return false;
  // Nobody has touched it.
  unsigned char there = 0;
  const bool locked = mincore(page, page_bytes, &there) == 0 && (there & 1) != 0;
  unmap(page, page_bytes);
  return locked;
}

int make_sealed_text(const char* name, const void* data, std::size_t bytes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) return -errno;
  const int fd = above_streams(made);
  if (fd < 0) return fd;
  if (!write_at(fd, data, bytes, 0) ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int error = errno;
    close(fd);
    return -error;
  }
  return fd;
}

bool read_front(int fd, void* data, std::size_t bytes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  return pread(fd, data, bytes, 0) == static_cast<ssize_t>(bytes);
}

off_t sealed_bytes(int fd) noexcept {
  const KeepErrno keep;
  struct stat status {};
  struct statfs system {};
  const int seals = fcntl(fd, F_GET_SEALS);
  const int mode = fcntl(fd, F_GETFL);
  constexpr int unwritable = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
  // Sealed for good: a later seal would make it unwritable while it is in use.
  constexpr int needed = F_SEAL_SHRINK | F_SEAL_SEAL;
  if (seals < 0 || (seals & needed) != needed || (seals & unwritable) != 0 || mode < 0 ||
      (mode & O_ACCMODE) != O_RDWR || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
      fstatfs(fd, &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return -EINVAL;
  }
  return status.st_size;
}

void* reserve(std::size_t bytes, std::size_t alignment) noexcept {
  const KeepErrno keep;
  // Addresses are whole pages already.
  const std::size_t spare = alignment > page_bytes ? alignment - page_bytes : 0;
  void* at =
      mmap(nullptr, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  if (spare != 0) {
    auto* const first = static_cast<std::byte*>(at);
    const auto number = reinterpret_cast<std::uintptr_t>(at);
    const std::size_t before = ((number + alignment - 1) & ~(alignment - 1)) - number;
    if (before != 0) munmap(first, before);
    if (spare != before) munmap(first + before + bytes, spare - before);
    at = first + before;
  }
  munlock(at, bytes);
  return at;
}

void* map_shared(void* at, std::size_t bytes, int fd, std::uint64_t offset) noexcept {
  const KeepErrno keep;
  const int fixed = at != nullptr ? MAP_FIXED : 0;
  void* mapped = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | fixed, fd,
                      static_cast<off_t>(offset));
  return mapped == MAP_FAILED ? nullptr : mapped;
}

bool unmap_to_reserve(void* at, std::size_t bytes) noexcept {
  const KeepErrno keep;
  if (mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
      MAP_FAILED) {
    return false;
  }
  munlock(at, bytes);
  return true;
}

bool map_private_at(void* at, std::size_t bytes) noexcept {
  const KeepErrno keep;
  return mmap(at, bytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool map_copy_at(void* at, std::size_t bytes, int fd, std::uint64_t offset) noexcept {
  const KeepErrno keep;
  return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, fd,
              static_cast<off_t>(offset)) != MAP_FAILED;
}

bool punch_hole(int fd, std::uint64_t offset, std::size_t bytes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  int result;
  do {
    result = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

bool remove_pages(void* at, std::size_t bytes) noexcept {
  const KeepErrno keep;
  return madvise(at, bytes, MADV_REMOVE) == 0;
}

bool write_at(int fd, const void* data, std::size_t bytes, std::uint64_t offset) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t part = pwrite(fd, static_cast<const char*>(data) + done, bytes - done,
                                static_cast<off_t>(offset + done));
    if (part <= 0) {
      if (part < 0 && errno == EINTR) continue;
      return false;
    }
    done += static_cast<std::size_t>(part);
  }
  return true;
}

bool random_bytes(void* buffer, std::size_t bytes) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  return getrandom(buffer, bytes, GRND_NONBLOCK) == static_cast<ssize_t>(bytes);
}

}  // namespace haul::os
