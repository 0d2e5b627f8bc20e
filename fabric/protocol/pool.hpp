// Operations by number: what a peer is told instead of an address. A token of an operation that has
// ended names nothing, whatever took its place.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace haul::fabric {

// T has members `std::uint64_t token` and `T* next_free`, and a reset(). A token is an index, and
// above it a number that is 0 while the item is free, and new for each use.
template <class T>
class Pool {
 public:
  explicit Pool(std::size_t limit) noexcept : limit_(limit) {}

  // nullptr when `limit` are in use.
  T* take() noexcept { return used_ < limit_ ? take_beyond_limit() : nullptr; }
  // For what a peer asks: never refused.
  T* take_beyond_limit() noexcept {
    if (free_ == nullptr) grow();
    T* item = free_;
    free_ = item->next_free;
    if (++generation_ == 0) ++generation_;
    item->token |= static_cast<std::uint64_t>(generation_) << 32;
    ++used_;
    return item;
  }
  void give(T* item) noexcept {
    item->reset();
    item->token = static_cast<std::uint32_t>(item->token);
    item->next_free = free_;
    free_ = item;
    --used_;
  }
  // nullptr unless the token names an operation in use.
  T* find(std::uint64_t token) noexcept {
    const auto index = static_cast<std::uint32_t>(token);
    if (!in_use(token) || index >= slabs_.size() * slab) return nullptr;
    T* item = &slabs_[index / slab][index % slab];
    return item->token == token ? item : nullptr;
  }
  template <class Visit>
  void each(Visit&& visit) noexcept {
    for (std::size_t i = 0; i < slabs_.size(); ++i) {
      for (std::size_t j = 0; j < slab; ++j) {
        if (in_use(slabs_[i][j].token)) visit(slabs_[i][j]);
      }
    }
  }
  std::size_t used() const noexcept { return used_; }
  bool full() const noexcept { return used_ >= limit_; }

 private:
  static constexpr std::size_t slab = 64;
  static bool in_use(std::uint64_t token) noexcept { return token >> 32 != 0; }
  void grow() noexcept {
    slabs_.push_back(std::make_unique<T[]>(slab));
    T* items = slabs_.back().get();
    for (std::size_t j = slab; j-- > 0;) {
      items[j].token = (slabs_.size() - 1) * slab + j;
      items[j].next_free = free_;
      free_ = &items[j];
    }
  }
  std::vector<std::unique_ptr<T[]>> slabs_;
  T* free_ = nullptr;
  std::size_t used_ = 0;
  const std::size_t limit_;
  std::uint32_t generation_ = 0;
};

}  // namespace haul::fabric
