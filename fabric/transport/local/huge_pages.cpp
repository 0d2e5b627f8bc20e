// Uses counted, the kernel asked.
#include "fabric/transport/local/huge_pages.hpp"

#include <algorithm>

#include "base/knobs.hpp"
#include "base/machine/huge_pages.hpp"

namespace haul::fabric {
namespace {

// Asked again after so many uses: the program may have given the memory back meanwhile.
constexpr std::uint32_t ask_every = 64;
constexpr std::uint32_t never = ~std::uint32_t{0};

// From an eighth on, the small pages at the ends cost more than the huge ones gain.
bool nearly_all(std::size_t huge, std::size_t bytes) noexcept {
  return huge >= bytes - bytes / 8;
}

}  // namespace

HugePages::~HugePages() {
  page_map_.close();
}

bool HugePages::use(const void* address, std::size_t bytes) noexcept {
  if (bytes < smallest_bytes) return false;
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const std::uint64_t hash = (number ^ (bytes * 0x9e3779b97f4a7c15u)) * 0x9e3779b97f4a7c15u;
  Buffer& buffer = buffers_[hash >> 56];
  static_assert(buffer_count == 1u << 8);
  if (buffer.address != number || buffer.bytes != bytes) {
    buffer = Buffer{};
    buffer.address = number;
    buffer.bytes = bytes;
  }
  ++buffer.uses;
  if (buffer.uses >= buffer.ask_at) {
    buffer.ask_at = buffer.uses + ask_every;
    buffer.huge = lies_on_huge(buffer);
  }
  if (!buffer.huge && buffer.uses >= buffer.collapse_at && bytes >= collapse_bytes &&
      knob_number(Knob::fabric_collapse) == 0) {
    buffer.huge = collapse(buffer);
    // It may be possible later, but is tried less and less often.
    if (!buffer.huge) {
      buffer.collapse_at = buffer.collapse_at < never / 4 ? buffer.collapse_at * 4 : never;
    }
    buffer.ask_at = buffer.uses + ask_every;
  }
  return buffer.huge;
}

bool HugePages::lies_on_huge(const Buffer& buffer) noexcept {
  if (!page_map_tried_) {
    page_map_tried_ = true;
    page_map_ = os::Descriptor::of(os::open_page_map());
  }
  // If the kernel cannot tell, memory that was moved is assumed to be there still.
  const int page_map = page_map_.get();
  if (page_map < 0) return buffer.huge;
  const std::int64_t found = os::huge_bytes(page_map, buffer.address, buffer.bytes);
  return found < 0 ? buffer.huge : nearly_all(static_cast<std::size_t>(found), buffer.bytes);
}

// Collapses the huge pages that the buffer lies on where the mapping reaches that far, else those
// within it. The bytes beside the buffer in the first and the last page keep their values.
bool HugePages::collapse(const Buffer& buffer) noexcept {
  constexpr std::uintptr_t mask = os::huge_page_bytes - 1;
  const std::uintptr_t end = buffer.address + buffer.bytes;
  std::size_t huge = 0;
  for (std::uintptr_t page = buffer.address & ~mask; page < end; page += os::huge_page_bytes) {
    if (os::collapse_to_huge(page, os::huge_page_bytes) != 0) continue;
    huge += std::min(page + os::huge_page_bytes, end) - std::max(page, buffer.address);
  }
  return nearly_all(huge, buffer.bytes);
}

}  // namespace haul::fabric
