#include "base/machine/huge_pages.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "base/machine/page_scan.hpp"
#include "base/machine/pages.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

}  // namespace

int collapse_to_huge(std::uintptr_t address, std::size_t bytes) noexcept {
  return advise(reinterpret_cast<void*>(address), bytes, MADV_COLLAPSE);
}

int open_page_map() noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -errno : above_streams(fd);
}

std::int64_t huge_bytes(int page_map, std::uintptr_t address, std::size_t bytes) noexcept {
  const std::uint64_t end = address + bytes;
  std::uint64_t found = 0;
  ScanRegion regions[16] = {};
  ScanArgument scan{};
  scan.vec = reinterpret_cast<std::uintptr_t>(regions);
  scan.vec_len = std::size(regions);
  scan.category_mask = page_is_huge;
  scan.return_mask = page_is_huge;
  scan.end = (end + page_bytes - 1) & ~(page_bytes - 1);
  for (scan.start = address & ~(page_bytes - 1); scan.start < scan.end;) {
    const int count = scan_pages(page_map, &scan);
    if (count < 0) return count;
    for (int i = 0; i < count; ++i)
      found += std::min(regions[i].end, end) - std::max<std::uint64_t>(regions[i].start, address);
    if (scan.walk_end <= scan.start) break;
    scan.start = scan.walk_end;
  }
  return static_cast<std::int64_t>(found);
}

}  // namespace haul::os
