// Which physical page a virtual page was last seen on: what the writer and the reader of a trace
// both remember.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/layout.hpp"

namespace bcisim {

// A table of one entry for each hash value. A page that it does not hold is expected as far from
// its virtual one as the last new page of the same half of the address space: so the kernel's
// direct map needs no word.
class Pages {
 public:
  Pages() : entries_(entries, {unused, 0}) {}

  std::uint64_t expected(std::uint64_t virtual_page) const {
    const Entry& entry = entries_[index_of(virtual_page)];
    if (entry.virtual_page == virtual_page) [[likely]]
      return entry.physical_page;
    return (virtual_page + distances_[half_of(virtual_page)]) & layout::most_page;
  }

  // To be called after every expected(), with the page that it was.
  void learn(std::uint64_t virtual_page, std::uint64_t physical_page) {
    Entry& entry = entries_[index_of(virtual_page)];
    if (entry.virtual_page == virtual_page && entry.physical_page == physical_page) [[likely]]
      return;
    entry = {virtual_page, physical_page};
    distances_[half_of(virtual_page)] = physical_page - virtual_page;
  }

 private:
  static constexpr std::size_t entries = std::size_t{1} << 14;
  static constexpr std::uint64_t unused = ~std::uint64_t{0};
  struct Entry {
    std::uint64_t virtual_page, physical_page;
  };

  static std::size_t index_of(std::uint64_t page) {
    return static_cast<std::size_t>((page * 0x9e3779b97f4a7c15u) >> 50);
  }
  static std::size_t half_of(std::uint64_t page) {
    return static_cast<std::size_t>(page >> 51) & 1;  // addresses are 64 bits, pages 52
  }

  std::vector<Entry> entries_;
  std::array<std::uint64_t, 2> distances_{};
};

}  // namespace bcisim
