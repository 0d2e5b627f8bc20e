// PAGEMAP_SCAN, the request by which a page map (open_page_map()) tells what pages a range has:
// <linux/fs.h> of Linux 6.7, which older headers lack.
#pragma once

#include <cstdint>

namespace haul::os {

struct ScanRegion {
  std::uint64_t start, end, categories;
};
struct ScanArgument {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  std::uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

inline constexpr std::uint64_t page_is_present = 1u << 3, page_is_swapped = 1u << 4,
                               page_is_huge = 1u << 6;

// How many regions were found, or -errno.
int scan_pages(int page_map, ScanArgument* scan) noexcept;

}  // namespace haul::os
