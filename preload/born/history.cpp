#include "preload/born/history.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/machine/huge_pages.hpp"
#include "base/os/keep_errno.hpp"
#include "base/private.hpp"
#include "preload/born/heap.hpp"

namespace haul::preload {
namespace {

// As many as were written whole before the next is taken for one that will be.
constexpr unsigned enough = 2;
// One of so many is left as it is, to see whether the program still does the same.
constexpr unsigned look_again = 8;

struct SizeHistory {
  std::size_t bytes = 0;
  std::uintptr_t watched = 0;  // the last one whose pages were left to the program; 0: none
  unsigned filled = 0, made = 0;
};
constinit SizeHistory sizes[8];
constinit std::size_t next_size = 0;

// As some of its pages say, at irregular places, the first and the last one.
bool is_filled(std::uintptr_t address, std::size_t bytes) noexcept {
  constexpr unsigned looks = 32;
  const std::size_t pages = bytes / born_page_bytes;
  const auto is_there = [&](std::size_t page) noexcept {
    unsigned char there = 0;
    return mincore(reinterpret_cast<void*>(address + page * born_page_bytes), born_page_bytes,
                   &there) == 0 &&
           (there & 1) != 0;
  };
  if (!is_there(pages - 1)) return false;
  for (std::uint64_t i = 0; i < looks; ++i) {
    const std::uint64_t part = (i * 0x9e3779b97f4a7c15u) >> 32;  // of 2^32
    if (!is_there(part * pages >> 32)) return false;
  }
  return true;
}

void look_at_watched(SizeHistory& size) noexcept {
  if (size.watched == 0) return;
  size.filled = is_filled(size.watched, size.bytes) ? std::min(size.filled + 1, enough) : 0;
  size.watched = 0;
}

SizeHistory* find(std::size_t bytes) noexcept {
  SizeHistory* const found =
      std::find_if(std::begin(sizes), std::end(sizes),
                   [&](const SizeHistory& one) { return one.bytes == bytes; });
  return found != std::end(sizes) ? found : nullptr;
}

bool memory_is_in_one_place() noexcept {
  enum : int { unknown, yes, no };
  // (A local static that runs code needs a part of libstdc++ that allocates.)
  static constinit int known = unknown;
  if (known == unknown) known = access("/sys/devices/system/node/node1", F_OK) != 0 ? yes : no;
  return known == yes;
}

}  // namespace

bool note_birth(std::uintptr_t address, std::size_t bytes) noexcept {
  if (bytes < os::huge_page_bytes || !memory_is_in_one_place()) return false;
  const KeepErrno keep;
  SizeHistory* size = find(bytes);
  if (size == nullptr) {
    size = &sizes[next_size++ % std::size(sizes)];
    *size = {bytes};
  }
  look_at_watched(*size);
  if (size->filled == enough && ++size->made % look_again != 0) return true;
  size->watched = address;
  return false;
}

void note_end(std::uintptr_t address, std::size_t bytes) noexcept {
  const KeepErrno keep;
  SizeHistory* const size = find(bytes);
  if (size != nullptr && size->watched == address) look_at_watched(*size);
}

void make_pages(std::uintptr_t address, std::size_t bytes) noexcept {
  const std::uintptr_t end = address + bytes;
  for (std::uintptr_t at = address; at < end;)
    at += haul_private_make_pages(address, end, at, end - at);
}

}  // namespace haul::preload
