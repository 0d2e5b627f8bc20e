// MADV_COLLAPSE and PAGEMAP_SCAN.
#include "base/huge_pages.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/descriptor.hpp"
#include "base/keep_errno.hpp"
#include "base/os.hpp"
#include "base/uncancelled.hpp"

namespace haul::os {
namespace {

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

// <linux/fs.h> of Linux 6.7; older headers lack them.
struct ScanRegion {
  std::uint64_t start, end, categories;
};
struct ScanArgument {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  std::uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long pagemap_scan = _IOWR('f', 16, ScanArgument);
constexpr std::uint64_t page_is_huge = 1u << 6;

}  // namespace

int collapse_to_huge(std::uintptr_t address, std::size_t bytes) noexcept {
  const KeepErrno keep;
  return madvise(reinterpret_cast<void*>(address), bytes, MADV_COLLAPSE) == 0 ? 0 : -errno;
}

int open_page_map() noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -errno : above_streams(fd);
}

std::int64_t huge_bytes(int page_map, std::uintptr_t address, std::size_t bytes) noexcept {
  const KeepErrno keep;
  constexpr std::uint64_t page_bytes = 4096;
  const std::uint64_t end = address + bytes;
  std::uint64_t found = 0;
  ScanRegion regions[16] = {};
  ScanArgument scan{};
  scan.size = sizeof scan;
  scan.vec = reinterpret_cast<std::uintptr_t>(regions);
  scan.vec_len = std::size(regions);
  scan.category_mask = page_is_huge;
  scan.return_mask = page_is_huge;
  scan.end = (end + page_bytes - 1) & ~(page_bytes - 1);
  for (scan.start = address & ~(page_bytes - 1); scan.start < scan.end;) {
    const int count = ioctl(page_map, pagemap_scan, &scan);
    if (count < 0) return -errno;
    for (int i = 0; i < count; ++i)
      found += std::min(regions[i].end, end) - std::max<std::uint64_t>(regions[i].start, address);
    if (scan.walk_end <= scan.start) break;
    scan.start = scan.walk_end;
  }
  return static_cast<std::int64_t>(found);
}

}  // namespace haul::os
