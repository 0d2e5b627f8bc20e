// A side of a copy: virtual addresses in a row, on at most two pages, and the physical pages
// behind.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/bulk_copy.hpp"

namespace bcisim {

struct Region {
  std::uint64_t begin = 0;  // virtual
  unsigned bytes = 0;
  std::array<std::uint64_t, 2> pages{};  // physical page numbers, from that of `begin` on

  bool empty() const { return bytes == 0; }
  std::uint64_t physical() const { return pages[0] * page_bytes + begin % page_bytes; }
  // Those of its bytes that lie on the page of `begin`.
  unsigned on_first_page() const {
    return std::min(bytes, static_cast<unsigned>(page_bytes - begin % page_bytes));
  }
  // Takes bytes away at its beginning, at most those on the first page.
  void drop(unsigned count) {
    if (count == page_bytes - begin % page_bytes) pages[0] = pages[1];
    begin += count;
    bytes -= count;
  }
  // How many of its bytes are among [physical, physical + count). Physical addresses see through
  // aliases: a page may be mapped for the kernel and for a user.
  unsigned shared_with(std::uint64_t physical_begin, unsigned count) const {
    unsigned shared = 0;
    Region rest = *this;
    while (!rest.empty()) {
      const unsigned part = rest.on_first_page();
      const std::uint64_t from = std::max(physical_begin, rest.physical());
      const std::uint64_t to = std::min(physical_begin + count, rest.physical() + part);
      if (from < to) shared += static_cast<unsigned>(to - from);
      rest.drop(part);
    }
    return shared;
  }
};

// Of a fill: empty.
inline Region source_of(const BulkCopy& copy) {
  return copy.is_fill ? Region{} : Region{copy.source, copy.bytes, copy.source_pages};
}
inline Region destination_of(const BulkCopy& copy) {
  return {copy.destination, copy.bytes, copy.destination_pages};
}

// A register that holds what is left of both sides of a copy: all of them at first.
class CopySides {
 public:
  void program(const BulkCopy& copy) {
    source_ = source_of(copy);
    destination_ = destination_of(copy);
  }
  const Region& source() const { return source_; }
  const Region& destination() const { return destination_; }

 protected:
  Region source_, destination_;
};

}  // namespace bcisim
