#include "engine/uffd/huge_blocks.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/machine/huge_pages.hpp"
#include "base/machine/pages.hpp"
#include "base/os/os.hpp"
#include "base/os/pages/own_memory.hpp"
#include "base/os/pages/userfault.hpp"
#include "copy/copy.hpp"

namespace haul {
namespace {

using os::huge_page_bytes;

constinit std::atomic<bool> allowed_now{false};
constinit std::atomic<const HaulPrivateAsides*> all_asides{nullptr};

std::uintptr_t own_place_of(std::uintptr_t block) noexcept {
  const HaulPrivateAsides* const asides = all_asides.load(std::memory_order_relaxed);
  return asides != nullptr ? asides->place_of(block) : 0;
}

// A place of one huge page, which is empty again once its page has moved. One is kept for the next
// caller; several at once make one each.
struct SpareBlock {
  void* mapped = nullptr;
  static constexpr std::size_t mapped_bytes = 2 * huge_page_bytes;

  std::uintptr_t begin() const noexcept {
    return (reinterpret_cast<std::uintptr_t>(mapped) + huge_page_bytes - 1) &
           ~(huge_page_bytes - 1);
  }
};
constinit std::atomic<void*> kept{nullptr};

SpareBlock take_place() noexcept {
  SpareBlock place{kept.exchange(nullptr, std::memory_order_acquire)};
  if (place.mapped != nullptr) return place;
  place.mapped = os::map_anonymous(SpareBlock::mapped_bytes);
  if (place.mapped != nullptr)
    os::want_huge_pages(reinterpret_cast<void*>(place.begin()), huge_page_bytes);
  return place;
}

void give_back(const SpareBlock& place) noexcept {
  void* none = nullptr;
  if (!kept.compare_exchange_strong(none, place.mapped, std::memory_order_release))
    os::unmap(place.mapped, SpareBlock::mapped_bytes);
}

// A failure has left something in the place.
void give_back_emptied(const SpareBlock& place) noexcept {
  if (os::drop_own_pages(place.mapped, SpareBlock::mapped_bytes)) {
    give_back(place);
  } else {
    os::unmap(place.mapped, SpareBlock::mapped_bytes);
  }
}

// The program may take the source away at any moment.
bool copy_to(std::uintptr_t place, std::uintptr_t from) noexcept {
  const std::int64_t copied = os::copy_own(place, from, huge_page_bytes);
  // A filter that refuses the call refuses it again.
  if (copied == -EPERM || copied == -ENOSYS) allow_huge_blocks(false);
  return copied == static_cast<std::int64_t>(huge_page_bytes);
}

// (Pages are made first, so that memory that cannot be had is an error here, and no signal.)
bool repeat_in(std::uintptr_t place, std::uint64_t pattern, bool is_new) noexcept {
  if (!os::populate(place, huge_page_bytes)) return false;
  // New pages are zero, which is all that a fill with zero takes.
  if (pattern != 0 || !is_new)
    copy::fill_bytes(reinterpret_cast<void*>(place), huge_page_bytes, pattern, sizeof pattern,
                     Affinity::cacheable);
  return true;
}

}  // namespace

void allow_huge_blocks(bool allowed) noexcept {
  allowed_now.store(allowed, std::memory_order_relaxed);
}

void look_aside_in(const HaulPrivateAsides& asides) noexcept {
  all_asides.store(&asides, std::memory_order_relaxed);
}

HugeBlocks::HugeBlocks(int fd, Turnstile* turnstile, const Piece& piece) noexcept
    : turnstile_(turnstile), piece_(piece) {
  first_ = ((piece.dst + huge_page_bytes - 1) & ~(huge_page_bytes - 1)) - piece.dst;
  count_ = first_ < piece.length ? std::min((piece.length - first_) / huge_page_bytes, room) : 0;
  for (std::size_t number = 1; number < count_; ++number) provide(fd, number);
  if (count_ != 0) provide(fd, 0);
}

void HugeBlocks::provide(int fd, std::size_t number) noexcept {
  if (bring(fd, first_ + number * huge_page_bytes))
    provided_[number / 64] |= std::uint64_t{1} << number % 64;
}

bool HugeBlocks::bring(int fd, std::size_t offset) noexcept {
  const std::uintptr_t to = piece_.dst + offset;
  if (os::any_resident(to, huge_page_bytes)) return os::all_resident(to, huge_page_bytes);
  // (Whoever serves a touch of it may be filling the same page now, with the same bytes: what one
  // of them moves the other finds there.)
  if (const std::uintptr_t own = own_place_of(to); own != 0)
    return fill_and_move(fd, offset, own, false);
  if (!allowed_now.load(std::memory_order_relaxed)) return false;
  const SpareBlock place = take_place();
  if (place.mapped == nullptr) return false;
  const bool brought = fill_and_move(fd, offset, place.begin(), true);
  if (brought) {
    give_back(place);
  } else {
    give_back_emptied(place);
  }
  return brought;
}

// (Small pages, where there are no huge ones, may be moved in part: the rest is for whoever fills
// what is missing.)
bool HugeBlocks::fill_and_move(int fd, std::size_t offset, std::uintptr_t place,
                               bool is_new) noexcept {
  const bool filled = piece_.operation == Operation::fill ? repeat_in(place, piece_.pattern, is_new)
                                                          : copy_to(place, piece_.src + offset);
  if (!filled) return false;
  const TurnstilePass pass(turnstile_);
  return os::move_pages(fd, piece_.dst + offset, place, huge_page_bytes) ==
         static_cast<std::int64_t>(huge_page_bytes);
}

HugeBlocks::Stretch HugeBlocks::stretch_at(std::size_t offset) const noexcept {
  const std::size_t end = first_ + count_ * huge_page_bytes;
  if (offset < first_) return {std::min(first_, piece_.length) - offset, false};
  if (offset >= end) return {piece_.length - offset, false};
  const std::size_t number = (offset - first_) / huge_page_bytes;
  return {first_ + (number + 1) * huge_page_bytes - offset,
          (provided_[number / 64] >> number % 64 & 1) != 0};
}

}  // namespace haul
