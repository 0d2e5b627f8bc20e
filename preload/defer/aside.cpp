#include "preload/defer/aside.hpp"

#include <sys/uio.h>

#include <cerrno>

#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/os/userfault.hpp"
#include "preload/mem/front.hpp"

namespace haul::preload {
namespace {

using os::huge_page_bytes;
static_assert(HaulPrivateAsides::block_bytes == huge_page_bytes);
constexpr std::size_t room = HaulPrivateAsides::room;
constexpr std::size_t mapped_bytes = (room + 1) * huge_page_bytes;
constexpr std::uintptr_t brought = 1;  // added to a block that is back

constinit HaulPrivateAsides table{};
constinit bool asked = false;
constinit void* mapped_places = nullptr;

std::uintptr_t place(std::size_t x) noexcept {
  return table.begin + x * huge_page_bytes;
}
std::uintptr_t block_at(std::size_t x) noexcept {
  return table.blocks[x].load(std::memory_order_relaxed);
}
void set_block(std::size_t x, std::uintptr_t block) noexcept {
  table.blocks[x].store(block, std::memory_order_relaxed);
}

// Once. Where a place has no page, as when two were at one page at once, it gets a huge one.
bool make_asides() noexcept {
  if (asked) return table.begin != 0;
  asked = true;
  mapped_places = map_empty(mapped_bytes);
  if (mapped_places == nullptr) return false;
  table.begin = (reinterpret_cast<std::uintptr_t>(mapped_places) + huge_page_bytes - 1) &
                ~(huge_page_bytes - 1);
  os::want_huge_pages(reinterpret_cast<void*>(table.begin), room * huge_page_bytes);
  return true;
}

// The first of so many free places in a row; `room`: there are none.
std::size_t free_places(std::size_t count) noexcept {
  std::size_t first = 0;
  for (std::size_t x = 0; x < room; ++x) {
    if (block_at(x) != 0) first = x + 1;
    if (x + 1 - first == count) return first;
  }
  return room;
}

void drop(std::size_t x) noexcept {
  os::drop_own_pages(reinterpret_cast<void*>(place(x)), huge_page_bytes);
}

// By the kernel, since the program may take the source away without libc.
bool copy_block(std::uintptr_t to, std::uintptr_t from) noexcept {
  const iovec here{reinterpret_cast<void*>(to), huge_page_bytes};
  const iovec source{reinterpret_cast<void*>(from), huge_page_bytes};
  return os::read_process(os::process_id(), &here, 1, &source, 1) ==
         static_cast<ssize_t>(huge_page_bytes);
}

}  // namespace

const HaulPrivateAsides& asides() noexcept {
  return table;
}

std::size_t put_aside(const Bounds& blocks) noexcept {
  const std::size_t count = (blocks.end - blocks.begin) / huge_page_bytes;
  if (!make_asides()) return 0;
  const std::size_t first = free_places(count);
  const int fd = userfault();
  if (first == room ||
      os::watch(fd, place(first), count * huge_page_bytes, os::WatchFor::missing) != 0)
    return 0;
  std::size_t put = 0;
  bool torn = false;
  for (std::size_t x = 0; x < count;) {
    const std::int64_t result = os::move_pages(
        fd, place(first + x), blocks.begin + x * huge_page_bytes, (count - x) * huge_page_bytes);
    const std::size_t moved = result > 0 ? static_cast<std::size_t>(result) : 0;
    for (const std::size_t end = x + moved / huge_page_bytes; x < end; ++x)
      set_block(first + x, blocks.begin + x * huge_page_bytes);
    put += moved & ~(huge_page_bytes - 1);
    if (x == count) break;
    // This one stays, or has been torn: what is missing of it is new memory, since all of it is to
    // be overwritten.
    torn = torn || moved % huge_page_bytes != 0;
    ++x;
  }
  // From now on a place without a page is no reason to hold whoever fills it, or drops what is
  // there.
  os::unwatch(fd, place(first), count * huge_page_bytes);
  for (std::size_t x = 0; torn && x < count; ++x)
    if (block_at(first + x) == 0) drop(first + x);
  return put;
}

std::int64_t bring_aside(std::uintptr_t block, std::uintptr_t src, unsigned char value) noexcept {
  std::size_t x = 0;
  while (x < room && block_at(x) != block) ++x;
  if (x == room) return 0;
  if (os::is_resident(block)) {
    set_block(x, block + brought);
    return 0;
  }
  if (src == 0) {
    front.set(reinterpret_cast<void*>(place(x)), value, huge_page_bytes);
  } else if (!copy_block(place(x), src)) {
    return 0;
  }
  const std::int64_t result = os::move_pages(userfault(), block, place(x), huge_page_bytes);
  if (result == -EAGAIN) return result;
  set_block(x, block + brought);
  return result == static_cast<std::int64_t>(huge_page_bytes) ? result : 0;
}

void end_aside(const Bounds& blocks, bool back) noexcept {
  for (std::size_t x = 0; x < room; ++x) {
    const std::uintptr_t block = block_at(x) & ~brought;
    if (block == 0 || block < blocks.begin || block >= blocks.end) continue;
    if (back && block_at(x) == block) os::move_pages(userfault(), block, place(x), huge_page_bytes);
    drop(x);
    set_block(x, 0);
  }
}

bool put_aside_no_more(void** mapped) noexcept {
  *mapped = nullptr;
  asked = true;
  for (std::size_t x = 0; x < room; ++x)
    if (block_at(x) != 0) return false;
  table.begin = 0;
  *mapped = mapped_places;
  mapped_places = nullptr;
  return true;
}
std::size_t asides_bytes() noexcept {
  return mapped_bytes;
}

void forget_asides() noexcept {
  for (std::size_t x = 0; x < room; ++x)
    if (block_at(x) != 0) {
      drop(x);
      set_block(x, 0);
    }
}

}  // namespace haul::preload
