// First fit over a sorted table.
#include "memory/page_map.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/os/os.hpp"

namespace haul {
namespace {

constexpr std::size_t first_room = (64u << 10) / sizeof(PageRange);
static_assert(std::is_trivially_copyable_v<PageRange>);

}  // namespace

// The first range that begins at `page` or behind.
std::size_t PageMap::index_from(std::uint64_t page) const noexcept {
  const PageRange* at = std::lower_bound(
      used_, used_ + count_, page,
      [](const PageRange& range, std::uint64_t wanted) { return range.begin < wanted; });
  return static_cast<std::size_t>(at - used_);
}

bool PageMap::insert(std::size_t index, PageRange range) noexcept {
  if (count_ == room_) {
    const std::size_t room = room_ == 0 ? first_room : 2 * room_;
    void* grown = os::map_anonymous(room * sizeof(PageRange));
    if (grown == nullptr) return false;
    if (count_ != 0) std::memcpy(grown, used_, count_ * sizeof(PageRange));
    os::unmap(used_, room_ * sizeof(PageRange));
    used_ = static_cast<PageRange*>(grown);
    room_ = room;
  }
  std::memmove(used_ + index + 1, used_ + index, (count_ - index) * sizeof(PageRange));
  used_[index] = range;
  ++count_;
  while (dense_ < count_ && used_[dense_].begin == dense_page_) dense_page_ = used_[dense_++].end;
  return true;
}

std::uint64_t PageMap::take(std::uint64_t pages, Full* full, std::uint64_t alignment) noexcept {
  const auto aligned = [alignment](std::uint64_t page) noexcept {
    return (page + alignment - 1) & ~(alignment - 1);
  };
  const auto fits = [pages](std::uint64_t page, std::uint64_t gap_end) noexcept {
    return page <= gap_end && gap_end - page >= pages;
  };
  std::uint64_t page = aligned(dense_page_);
  std::size_t index = dense_;
  while (index < count_ && !fits(page, used_[index].begin)) page = aligned(used_[index++].end);
  if (!fits(page, index < count_ ? used_[index].begin : end_)) {
    *full = Full::pages;
    return no_page;
  }
  if (!insert(index, PageRange{page, page + pages})) {
    *full = Full::table;
    return no_page;
  }
  *full = Full::no;
  return page;
}

bool PageMap::add(PageRange range) noexcept {
  if (range.begin < begin_ || range.end > end_ || range.begin >= range.end) return false;
  const std::size_t index = index_from(range.begin);
  if (index > 0 && used_[index - 1].end > range.begin) return false;
  if (index < count_ && used_[index].begin < range.end) return false;
  return insert(index, range);
}

PageRange PageMap::find(std::uint64_t page) const noexcept {
  const std::size_t index = index_from(page);
  return index < count_ && used_[index].begin == page ? used_[index] : PageRange{};
}

PageRange PageMap::leave(std::uint64_t page) noexcept {
  const PageRange range = find(page);
  if (range.pages() == 0 || range.leaving) return PageRange{};
  used_[index_from(page)].leaving = true;
  return range;
}

void PageMap::stay(std::uint64_t page) noexcept {
  if (find(page).pages() != 0) used_[index_from(page)].leaving = false;
}

bool PageMap::give_back(std::uint64_t page) noexcept {
  const std::size_t index = index_from(page);
  if (index == count_ || used_[index].begin != page) return false;
  if (index < dense_) {
    dense_ = index;
    dense_page_ = page;
  }
  --count_;
  std::memmove(used_ + index, used_ + index + 1, (count_ - index) * sizeof(PageRange));
  return true;
}

std::uint64_t PageMap::used_pages() const noexcept {
  std::uint64_t pages = 0;
  for (std::size_t i = 0; i < count_; ++i) pages += used_[i].pages();
  return pages;
}

void PageMap::clear() noexcept {
  os::unmap(used_, room_ * sizeof(PageRange));
  *this = PageMap(begin_, end_);
}

}  // namespace haul
