#include "preload/defer/aside.hpp"

#include <cerrno>

#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/own_memory.hpp"
#include "base/os/pages/userfault.hpp"
#include "preload/mem/front.hpp"

namespace haul::preload {
namespace {

using os::huge_page_bytes;
static_assert(HaulPrivateAsides::block_bytes == huge_page_bytes);

constinit HaulPrivateAsides table{};

// The places of a call, with what was mapped around them to have them begin with a block.
struct CallPlaces {
  Bounds blocks;  // whose they are
  void* mapped = nullptr;

  std::uintptr_t begin() const noexcept {
    return (reinterpret_cast<std::uintptr_t>(mapped) + huge_page_bytes - 1) &
           ~(huge_page_bytes - 1);
  }
  std::size_t bytes() const noexcept { return blocks.end - blocks.begin; }
  std::size_t mapped_bytes() const noexcept { return bytes() + huge_page_bytes; }
  std::uintptr_t of(std::uintptr_t block) const noexcept {
    return begin() + (block - blocks.begin);
  }
};
constinit CallPlaces places[HaulPrivateAsides::room];

// A place that has no page, since another filler has just moved it, gets a huge one when it is
// filled.
CallPlaces map_places(const Bounds& blocks) noexcept {
  CallPlaces made{blocks};
  made.mapped = map_empty(made.mapped_bytes());
  if (made.mapped != nullptr)
    os::want_huge_pages(reinterpret_cast<void*>(made.begin()), made.bytes());
  return made;
}

void unmap_places(unsigned call) noexcept {
  os::unmap(places[call].mapped, places[call].mapped_bytes());
  places[call] = CallPlaces{};
}

// Moves what the kernel lets. Of a page that it moves in part only, what is missing then is new
// memory, since all of it is to be overwritten. How many bytes of whole pages are aside.
std::size_t move_blocks(const CallPlaces& to) noexcept {
  const int fd = userfault();
  std::size_t put = 0;
  for (std::uintptr_t at = to.blocks.begin; at < to.blocks.end;) {
    const std::int64_t result = os::move_pages(fd, to.of(at), at, to.blocks.end - at);
    const std::size_t whole =
        result > 0 ? static_cast<std::size_t>(result) & ~(huge_page_bytes - 1) : 0;
    put += whole;
    at += whole;
    if (at < to.blocks.end) at += huge_page_bytes;
  }
  return put;
}

}  // namespace

const HaulPrivateAsides& asides() noexcept {
  return table;
}

bool may_put_aside() noexcept {
  return !os::addresses_are_limited();
}

std::size_t put_aside(unsigned call, const Bounds& blocks) noexcept {
  const CallPlaces made = map_places(blocks);
  if (made.mapped == nullptr) return 0;
  places[call] = made;
  std::size_t put = 0;
  if (os::watch(userfault(), made.begin(), made.bytes(), os::WatchFor::missing) == 0) {
    put = move_blocks(made);
    // From now on a place without a page is no reason to hold whoever fills it, or drops what is
    // there. (No neighbour is watched, so this splits no mapping, and the kernel does not refuse.)
    os::unwatch(userfault(), made.begin(), made.bytes());
  }
  if (put == 0) {
    unmap_places(call);
  } else {
    table.enter(call, blocks.begin, made.bytes() / huge_page_bytes, made.begin());
  }
  return put;
}

std::int64_t bring_aside(unsigned call, std::uintptr_t block, std::uintptr_t src,
                         unsigned char value) noexcept {
  if (os::is_resident(block)) return 0;
  const std::uintptr_t place = places[call].of(block);
  if (src == 0) {
    front.set(reinterpret_cast<void*>(place), value, huge_page_bytes);
  } else if (os::copy_own(place, src, huge_page_bytes) !=
             static_cast<std::int64_t>(huge_page_bytes)) {
    return 0;
  }
  const std::int64_t result = os::move_pages(userfault(), block, place, huge_page_bytes);
  return result == -EAGAIN || result == static_cast<std::int64_t>(huge_page_bytes) ? result : 0;
}

void end_aside(unsigned call, bool back) noexcept {
  const CallPlaces& over = places[call];
  for (std::uintptr_t block = over.blocks.begin; back && block < over.blocks.end;
       block += huge_page_bytes)
    os::move_pages(userfault(), block, over.of(block), huge_page_bytes);
  table.leave(call);
  unmap_places(call);
}

void forget_asides() noexcept {
  for (unsigned call = 0; call < HaulPrivateAsides::room; ++call) {
    table.leave(call);
    unmap_places(call);
  }
}

}  // namespace haul::preload
