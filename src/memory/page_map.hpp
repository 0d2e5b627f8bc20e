// Which pages are given out: ranges of page numbers, lowest first. It knows nothing of the memory
// behind the numbers. Not thread-safe; calls no malloc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul {

struct PageRange {
  std::uint64_t begin = 0, end = 0;
  bool leaving = false;  // still used, but freed by its owner
  std::uint64_t pages() const noexcept { return end - begin; }
};

// One sorted table of the used ranges. Free pages are the gaps between them, so neighbours that
// were freed become one gap without any work.
class PageMap {
 public:
  static constexpr std::uint64_t no_page = ~std::uint64_t{0};
  enum class Full : std::uint8_t { no, pages, table };  // why nothing was given out

  // Pages `begin` to `end` - 1, all free. No destructor: clear() unmaps the table.
  constexpr PageMap(std::uint64_t begin, std::uint64_t end) noexcept
      : begin_(begin), end_(end), dense_page_(begin) {}

  // Takes `pages` (> 0) adjacent free pages, the lowest there are whose first number is a multiple
  // of `alignment` (a power of two), and returns the first. no_page if there are none, or no memory
  // for the table: *full says which.
  std::uint64_t take(std::uint64_t pages, Full* full, std::uint64_t alignment = 1) noexcept;
  // Marks a range as used. False if some of it is, lies outside, or there is no memory for the
  // table.
  bool add(PageRange range) noexcept;
  // The used range that begins at `page`; empty if none does.
  PageRange find(std::uint64_t page) const noexcept;
  // The same, and marks the range as leaving, until it is given back or stays after all; empty also
  // if it is leaving already.
  PageRange leave(std::uint64_t page) noexcept;
  void stay(std::uint64_t page) noexcept;
  // Frees the used range that begins at `page`. False if none does. Needs no memory.
  bool give_back(std::uint64_t page) noexcept;

  // The used ranges in order; adjacent ones stay separate.
  std::size_t count() const noexcept { return count_; }
  const PageRange& operator[](std::size_t index) const noexcept { return used_[index]; }
  std::uint64_t used_pages() const noexcept;
  void clear() noexcept;

 private:
  std::size_t index_from(std::uint64_t page) const noexcept;
  bool insert(std::size_t index, PageRange range) noexcept;

  std::uint64_t begin_, end_;
  PageRange* used_ = nullptr;
  std::size_t count_ = 0, room_ = 0;
  // The first dense_ ranges lie side by side from begin_ to dense_page_: no gap is below it, so the
  // search begins there.
  std::size_t dense_ = 0;
  std::uint64_t dense_page_;
};

}  // namespace haul
