#include "base/machine/page_facts.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <cerrno>

#include "base/machine/cpu.hpp"
#include "base/machine/page_scan.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

// <linux/fs.h> of Linux 6.11, likewise.
struct MappingQuery {
  std::uint64_t size, flags, address;
  std::uint64_t begin, end, mapping_flags, page_size, offset, inode;
  std::uint32_t major, minor, name_size, build_id_size;
  std::uint64_t name_address, build_id_address;
};
constexpr unsigned long procmap_query = _IOWR('f', 17, MappingQuery);
constexpr std::uint64_t readable = 1, writable_too = 2, shared = 8;

bool is_private_mapping(const MappingQuery& mapping, bool writable) noexcept {
  const std::uint64_t wanted = writable ? readable | writable_too : readable;
  const std::uintptr_t stack = stack_pointer();
  return (mapping.mapping_flags & (wanted | shared)) == wanted && mapping.inode == 0 &&
         (stack < mapping.begin || stack >= mapping.end);
}

}  // namespace

int scan_pages(int page_map, ScanArgument* scan) noexcept {
  const KeepErrno keep;
  scan->size = sizeof *scan;
  const int count = ioctl(page_map, _IOWR('f', 16, ScanArgument), scan);
  return count < 0 ? -errno : count;
}

bool is_private_memory(std::uintptr_t begin, std::uintptr_t end, bool writable) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  Descriptor maps = Descriptor::of(above_streams(fd));
  bool is_private = maps.valid();
  while (is_private && begin < end) {
    MappingQuery mapping{};
    mapping.size = sizeof mapping;
    mapping.address = begin;
    is_private =
        ioctl(maps.number(), procmap_query, &mapping) == 0 && is_private_mapping(mapping, writable);
    begin = mapping.end;
  }
  maps.close();
  return is_private;
}

bool first_present(int page_map, std::uintptr_t begin, std::uintptr_t end, PageRun* run) noexcept {
  ScanRegion region{};
  ScanArgument scan{};
  scan.start = begin;
  scan.end = end;
  scan.vec = reinterpret_cast<std::uintptr_t>(&region);
  scan.vec_len = 1;
  scan.category_anyof_mask = page_is_present | page_is_swapped;
  // With nothing to return, pages in memory and pages swapped out are one region.
  scan.return_mask = 0;
  const int count = scan_pages(page_map, &scan);
  if (count == 0) return false;
  *run = count < 0 ? PageRun{begin, end} : PageRun{region.start, region.end};
  return true;
}

}  // namespace haul::os
