// The bulk instruction (paper 003, III-A): BLKCPY, or BLKINIT where there is no source. Its region
// is at most a page long (III-C3), so that each side touches two pages at most; a longer copy comes
// as several.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "format/event.hpp"
#include "model/affinity.hpp"
#include "model/parameters.hpp"

namespace bcisim {

inline constexpr unsigned most_bulk_bytes = page_bytes;

struct BulkCopy {
  bool is_fill = false;
  Affinities affinities;
  std::uint64_t destination = 0, source = 0;                         // virtual
  unsigned bytes = 0;                                                // 1 to most_bulk_bytes
  std::array<std::uint64_t, 2> destination_pages{}, source_pages{};  // physical page numbers
};

// The physical address behind a virtual one of a region that begins at `begin` and has these pages.
inline std::uint64_t physical_of(std::span<const std::uint64_t> pages, std::uint64_t begin,
                                 std::uint64_t address) {
  return pages[address / page_bytes - begin / page_bytes] * page_bytes + address % page_bytes;
}

// Calls visit(BulkCopy) for each bulk instruction that stands for the call, in the order of
// addresses. most_bytes: what one may copy, 1 to most_bulk_bytes.
template <class Visit>
void for_each_bulk_copy(const CopyCall& call, Affinities affinities, unsigned most_bytes,
                        Visit&& visit) {
  for (std::uint64_t at = 0; at < call.bytes;) {
    BulkCopy copy;
    copy.is_fill = call.kind == CopyKind::fill;
    copy.affinities = affinities;
    copy.destination = call.destination + at;
    copy.source = copy.is_fill ? 0 : call.source + at;
    copy.bytes = static_cast<unsigned>(std::min<std::uint64_t>(call.bytes - at, most_bytes));
    const auto take = [&copy](std::span<const std::uint64_t> pages, std::uint64_t region,
                              std::uint64_t begin) {
      std::array<std::uint64_t, 2> taken{};
      const std::uint64_t first = begin / page_bytes - region / page_bytes;
      const std::uint64_t last = (begin + copy.bytes - 1) / page_bytes - region / page_bytes;
      taken[0] = pages[first];
      taken[1] = pages[last];
      return taken;
    };
    copy.destination_pages = take(call.destination_pages, call.destination, copy.destination);
    if (!copy.is_fill) copy.source_pages = take(call.source_pages, call.source, copy.source);
    visit(copy);
    at += copy.bytes;
  }
}

}  // namespace bcisim
