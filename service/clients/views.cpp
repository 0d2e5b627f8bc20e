// Mapping, pinning and giving up views.
#include "service/clients/views.hpp"

#include <algorithm>
#include <bit>

#include "base/os/os.hpp"
#include "base/os/pages/sealed.hpp"

namespace haul::service {
namespace {

constexpr std::uint64_t largest_view_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t smallest_view_bytes = std::uint64_t{64} << 10;

// A quarter of the budget, so that both sides of a copy and a spare one fit.
std::uint64_t choose_view_bytes(std::uint64_t budget_bytes) {
  return std::bit_floor(std::clamp(budget_bytes / 4, smallest_view_bytes, largest_view_bytes));
}

}  // namespace

Views::Views(std::uint64_t budget_bytes)
    : budget_bytes_(budget_bytes), view_bytes_(choose_view_bytes(budget_bytes)) {}

Views::~Views() {
  unpin();
}

bool Views::attach(ArenaViews& arena, int fd, std::uint64_t base, std::uint64_t bytes) {
  void* reserved = budget_bytes_ == 0 ? nullptr : os::reserve(bytes);
  if (budget_bytes_ != 0 && reserved == nullptr) {
    os::close_fd(fd);
    return false;
  }
  arena.file_ = os::Descriptor::of(fd);
  arena.base_ = base;
  arena.bytes_ = bytes;
  arena.reserved_ = static_cast<std::byte*>(reserved);
  return true;
}

void Views::detach(ArenaViews& arena) {
  if (!arena.open()) return;
  for (const auto& [number, view] : arena.views_) by_use_.erase(view);
  arena.views_.clear();
  mapped_bytes_ -= arena.mapped_bytes_;
  arena.mapped_bytes_ = 0;
  if (arena.reserved_ != nullptr) undertaker_.unmap(arena.reserved_, arena.bytes_);
  arena.reserved_ = nullptr;
  arena.file_.close();
  arena.bytes_ = 0;
}

std::byte* Views::pin(ArenaViews& arena, std::uint64_t offset, std::size_t* length) {
  if (budget_bytes_ == 0) return pin_once(arena, offset, length);
  const std::uint64_t number = offset / view_bytes_;
  const std::uint64_t begin = number * view_bytes_;
  const std::uint64_t bytes = std::min(view_bytes_, arena.bytes_ - begin);
  *length = static_cast<std::size_t>(std::min<std::uint64_t>(*length, begin + bytes - offset));
  const auto found = arena.views_.find(number);
  if (found != arena.views_.end()) {
    by_use_.splice(by_use_.end(), by_use_, found->second);
  } else {
    while (mapped_bytes_ + bytes > budget_bytes_ && evict_oldest()) {
    }
    void* mapped = nullptr;
    do {
      mapped = os::map_shared(arena.reserved_ + begin, bytes, arena.file_.get(), begin);
    } while (mapped == nullptr && evict_oldest());
    if (mapped == nullptr) return nullptr;
    by_use_.push_back(View{&arena, number, bytes, false});
    arena.views_.emplace(number, std::prev(by_use_.end()));
    arena.mapped_bytes_ += bytes;
    mapped_bytes_ += bytes;
    ++maps_;
  }
  View& view = by_use_.back();
  if (!view.pinned) {
    if (pinned_count_ == max_pinned) return nullptr;
    view.pinned = true;
    pinned_[pinned_count_++] = &view;
  }
  return arena.reserved_ + offset;
}

std::byte* Views::pin_once(ArenaViews& arena, std::uint64_t offset, std::size_t* length) {
  if (once_count_ == max_pinned) return nullptr;
  const std::uint64_t begin = offset & ~(page_bytes - 1);
  const std::uint64_t end =
      std::min((offset + *length + page_bytes - 1) & ~(page_bytes - 1), arena.bytes_);
  void* mapped = os::map_shared(nullptr, end - begin, arena.file_.get(), begin);
  if (mapped == nullptr) return nullptr;
  *length = static_cast<std::size_t>(std::min<std::uint64_t>(*length, end - offset));
  once_[once_count_++] = Once{mapped, end - begin};
  ++maps_;
  return static_cast<std::byte*>(mapped) + (offset - begin);
}

void Views::unpin() {
  for (; pinned_count_ != 0; --pinned_count_) pinned_[pinned_count_ - 1]->pinned = false;
  for (; once_count_ != 0; --once_count_)
    os::unmap(once_[once_count_ - 1].at, once_[once_count_ - 1].bytes);
}

bool Views::evict_oldest() {
  for (auto view = by_use_.begin(); view != by_use_.end(); ++view) {
    if (view->pinned) continue;
    ArenaViews& arena = *view->arena;
    if (!os::unmap_to_reserve(arena.reserved_ + view->number * view_bytes_, view->bytes))
      return false;
    arena.mapped_bytes_ -= view->bytes;
    mapped_bytes_ -= view->bytes;
    arena.views_.erase(view->number);
    by_use_.erase(view);
    ++evictions_;
    return true;
  }
  return false;
}

}  // namespace haul::service
