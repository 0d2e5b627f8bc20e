#include "convert/copied_regions.hpp"

#include <algorithm>

#include "format/layout.hpp"

namespace bcisim {

using layout::page_shift;

std::optional<CopiedRegion> CopiedRegion::cover(std::vector<Reference>& references) {
  CopiedRegion region;
  if (references.empty()) return region;
  const std::uint64_t first = references.front().address;
  const auto below = [](const Reference& a, const Reference& b) { return a.address < b.address; };
  if (!std::is_sorted(references.begin(), references.end(), below))
    std::stable_sort(references.begin(), references.end(), below);
  region.address_ = references.front().address;
  region.ascending_ = first == region.address_;
  for (const Reference& reference : references) {
    const std::uint64_t into = reference.address - region.address_;
    if (into > region.bytes_) return std::nullopt;
    region.bytes_ = std::max(region.bytes_, into + reference.bytes);
    const std::uint64_t page = reference.address >> page_shift;
    if (region.pages_.empty() || region.pages_.back().virtual_page != page)
      region.pages_.push_back({page, reference.physical >> page_shift});
  }
  return region;
}

std::vector<std::uint64_t> CopiedRegion::physical_pages() const {
  std::vector<std::uint64_t> kept;
  const std::uint64_t first = address_ >> page_shift;
  const std::uint64_t last = (address_ + bytes_ - 1) >> page_shift;
  for (const Page& page : pages_)
    if (page.virtual_page >= first && page.virtual_page <= last) kept.push_back(page.physical_page);
  return kept;
}

}  // namespace bcisim
