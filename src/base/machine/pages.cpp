#include "base/machine/pages.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/machine/huge_pages.hpp"
#include "base/os/descriptor.hpp"
#include "base/os/keep_errno.hpp"
#include "base/os/os.hpp"
#include "base/thread/uncancelled.hpp"

namespace haul::os {
namespace {

// Do the kernel's flags of all these pages say so? False also where it has none.
template <class Condition>
bool every_page(std::uintptr_t page, std::size_t bytes, Condition condition) noexcept {
  const KeepErrno keep;
  constexpr std::size_t room = 512;  // pages by one call
  for (const std::uintptr_t end = page + bytes; page < end; page += room * page_bytes) {
    unsigned char flags[room];
    const std::size_t length = std::min(end - page, room * page_bytes);
    if (mincore(reinterpret_cast<void*>(page), length, flags) != 0 ||
        !std::all_of(flags, flags + length / page_bytes, condition))
      return false;
  }
  return true;
}

}  // namespace

bool is_resident(std::uintptr_t page) noexcept {
  const KeepErrno keep;
  unsigned char resident = 1;
  return mincore(reinterpret_cast<void*>(page), page_bytes, &resident) != 0 || (resident & 1) != 0;
}

bool any_resident(std::uintptr_t page, std::size_t bytes) noexcept {
  return !every_page(page, bytes, [](unsigned char flags) { return (flags & 1) == 0; });
}

bool all_resident(std::uintptr_t page, std::size_t bytes) noexcept {
  return every_page(page, bytes, [](unsigned char flags) { return (flags & 1) != 0; });
}

bool is_private(std::uintptr_t page) noexcept {
  const KeepErrno keep;
  const Uncancelled guard;
  // Documentation/admin-guide/mm/pagemap.rst: a word a page.
  constexpr std::uint64_t present = std::uint64_t{1} << 63, of_file = std::uint64_t{1} << 61;
  // The program may close it and open a file of its own at its number at any time.
  Descriptor map = Descriptor::of(open_page_map());
  std::uint64_t word = 0;
  const auto at = static_cast<off_t>(page / page_bytes * sizeof word);
  const bool read = map.valid() && pread(map.number(), &word, sizeof word, at) == sizeof word;
  map.close();
  return read && (word & (present | of_file)) == present;
}

bool populate(std::uintptr_t page, std::size_t bytes) noexcept {
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
  return advise(reinterpret_cast<void*>(page), bytes, MADV_POPULATE_WRITE) == 0;
}

bool huge_pages_on_request() noexcept {
  char text[64];
  return read_file("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text) > 0 &&
         std::strstr(text, "[madvise]") != nullptr;
}

}  // namespace haul::os
