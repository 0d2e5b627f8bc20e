#include "base/machine/page_facts.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/machine/cpu.hpp"
#include "base/machine/page_scan.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/mappings.hpp"
#include "base/thread/tasks.hpp"
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
constexpr std::uint64_t readable = 1, writable_too = 2, executable = 4, shared = 8;

// The kernel's name of a mapping: of none that lies in a file.
struct MappingName {
  static constexpr std::size_t room = 128;  // "[anon:...]" has 80 bytes of the program's choice
  char text[room] = "";

  bool is_main_stack() const noexcept { return strcmp(text, "[stack]") == 0; }
};

// Is it private, of no file, without the calling thread's stack, and are the rights of `mask` those
// that are wanted?
bool is_private_mapping(const MappingQuery& mapping, std::uint64_t mask,
                        std::uint64_t wanted) noexcept {
  const std::uintptr_t stack = stack_pointer();
  return (mapping.mapping_flags & (mask | shared)) == wanted && mapping.inode == 0 &&
         (stack < mapping.begin || stack >= mapping.end);
}

Descriptor open_maps() noexcept {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  return fd < 0 ? Descriptor() : Descriptor::of(above_streams(fd));
}

// `flags`: 0, the mapping that has this address; `or_next`, or the next one.
constexpr std::uint64_t or_next = 16;
bool query(const Descriptor& maps, std::uintptr_t address, MappingQuery* mapping,
           MappingName* name = nullptr, std::uint64_t flags = 0) noexcept {
  *mapping = MappingQuery{};
  mapping->size = sizeof *mapping;
  mapping->flags = flags;
  mapping->address = address;
  if (name != nullptr) {
    mapping->name_size = sizeof name->text;
    mapping->name_address = reinterpret_cast<std::uintptr_t>(name->text);
  }
  return maps.valid() && ioctl(maps.number(), procmap_query, mapping) == 0;
}

bool are_private(const Descriptor& maps, std::uintptr_t begin, std::uintptr_t end,
                 std::uint64_t mask, std::uint64_t wanted) noexcept {
  bool are = maps.valid();
  for (MappingQuery mapping; are && begin < end; begin = mapping.end)
    are = query(maps, begin, &mapping) && is_private_mapping(mapping, mask, wanted);
  return are;
}

// What the C library keeps for the main thread does not lie on its stack; but that has a name. (A
// file's mapping, which may have a longer one, was seen before.) Where the program has changed a
// part of it, the mappings below have none: the kernel maps nothing else so far below what it has
// put on the stack's top for the program, such as these bytes.
bool is_main_stack(const Descriptor& maps, std::uintptr_t begin, std::uintptr_t end) noexcept {
  constexpr std::uintptr_t least_gap = std::uintptr_t{128} << 20;  // MIN_GAP of the kernel
  const std::uintptr_t top = getauxval(AT_RANDOM);
  if (begin < top && end > top - least_gap) return true;
  MappingQuery mapping;
  for (MappingName name; begin < end; begin = mapping.end, name = {})
    if (!query(maps, begin, &mapping, &name) || name.is_main_stack()) return true;
  return false;
}

// A thread's stack ends below what the C library keeps for the thread, in the same mapping; and it
// has told the kernel where the list of its robust locks is, which is kept there.
struct StackSearch {
  const Descriptor& maps;
  std::uintptr_t begin, end;
  pid_t self;
  bool found = false;
  bool seen_self = false;  // not where /proc belongs to another pid namespace
};
bool look_for_stack(pid_t thread, void* context) noexcept {
  StackSearch& search = *static_cast<StackSearch*>(context);
  search.seen_self = search.seen_self || thread == search.self;
  std::uintptr_t head = 0;
  std::size_t bytes = 0;
  MappingQuery mapping;
  if (syscall(SYS_get_robust_list, thread, &head, &bytes) != 0 || head < search.begin ||
      !query(search.maps, head, &mapping) || mapping.begin >= search.end)
    return true;
  search.found = true;
  return false;
}

// For kernels that answer no such question.
struct PrivateRun {
  std::uintptr_t begin, end;
  PageRun whole;
  std::uintptr_t behind;  // as far as it is known to be private, from `begin` on

  static void look(const Mapping& mapping, void* run) noexcept {
    auto& self = *static_cast<PrivateRun*>(run);
    if (mapping.end <= self.behind || mapping.begin > self.behind || self.behind >= self.end)
      return;
    const std::uintptr_t stack = stack_pointer();
    if (!mapping.readable || mapping.shared || mapping.has_file ||
        (stack >= mapping.begin && stack < mapping.end))
      return;
    if (self.behind == self.begin) self.whole.begin = mapping.begin;
    self.behind = self.whole.end = mapping.end;
  }
};

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
  Descriptor maps = open_maps();
  const std::uint64_t wanted = writable ? readable | writable_too : readable;
  const bool is_private = are_private(maps, begin, end, wanted, wanted);
  maps.close();
  return is_private;
}

bool private_mappings(std::uintptr_t begin, std::uintptr_t end, PageRun* whole) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  Descriptor maps = open_maps();
  MappingQuery first, last;
  errno = 0;
  const bool answers = query(maps, begin, &first) || errno != ENOTTY;
  const bool are =
      answers && query(maps, end - 1, &last) && are_private(maps, begin, end, readable, readable);
  maps.close();
  if (!answers) return private_mappings_by_list(begin, end, whole);
  *whole = {first.begin, last.end};
  return are;
}

bool private_mappings_by_list(std::uintptr_t begin, std::uintptr_t end, PageRun* whole) noexcept {
  PrivateRun run{begin, end, {}, begin};
  if (!for_each_mapping(PrivateRun::look, &run) || run.behind < end) return false;
  *whole = run.whole;
  return true;
}

bool is_plain_memory(std::uintptr_t begin, std::uintptr_t end) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  Descriptor maps = open_maps();
  constexpr std::uint64_t wanted = readable | writable_too;
  StackSearch search{maps, begin, end, thread_id()};
  const bool is_plain = are_private(maps, begin, end, wanted | executable, wanted) &&
                        !is_main_stack(maps, begin, end) &&
                        for_each_task("/proc/self/task", look_for_stack, &search) &&
                        search.seen_self && !search.found;
  maps.close();
  return is_plain;
}

int first_mapped(std::uintptr_t begin, std::uintptr_t end, PageRun* run) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  Descriptor maps = open_maps();
  MappingQuery mapping;
  errno = 0;
  const bool found = query(maps, begin, &mapping, nullptr, or_next);
  const bool is_last = maps.valid() && errno == ENOENT;
  maps.close();
  if (!found) return is_last ? 0 : -1;
  if (mapping.begin >= end) return 0;
  *run = {std::max(begin, mapping.begin), std::min(end, mapping.end)};
  return 1;
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
