// The entries of a completion queue, in order, successes and failures. It grows, so that nothing is
// lost; the queue keeps it near its size by refusing requests.
#pragma once

#include <rdma/fi_eq.h>

#include <cstddef>
#include <memory>
#include <new>

#include "fabric/protocol/address.hpp"

namespace haul::fabric {

// What a failure has besides its entry.
struct CompletionError {
  int error = 0;
  std::size_t overflow = 0;
  bool has_address = false;  // FI_EADDRNOTAVAIL: the sender
  Address address;
};

struct alignas(64) CompletionEntry {
  fi_cq_tagged_entry shown = {};
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  CompletionError* error = nullptr;  // owned by the ring's user; nullptr: a success
};
static_assert(sizeof(CompletionEntry) == 64);

// Not thread-safe.
class CompletionRing {
 public:
  explicit CompletionRing(std::size_t size) noexcept {
    while (capacity_ < size) capacity_ *= 2;
    entries_.reset(new (std::nothrow) CompletionEntry[capacity_]);
  }
  bool valid() const noexcept { return entries_ != nullptr; }

  std::size_t size() const noexcept { return tail_ - head_; }
  bool empty() const noexcept { return tail_ == head_; }
  // The index-th oldest.
  CompletionEntry& at(std::size_t index) noexcept {
    return entries_[(head_ + index) & (capacity_ - 1)];
  }
  // Room for one more; nullptr if there is no memory.
  CompletionEntry* add() noexcept {
    if (size() == capacity_ && !grow()) return nullptr;
    return &entries_[tail_++ & (capacity_ - 1)];
  }
  void drop(std::size_t count) noexcept { head_ += count; }
  // Takes one out of the middle.
  void erase(std::size_t index) noexcept {
    for (; index > 0; --index) at(index) = at(index - 1);
    ++head_;
  }

 private:
  bool grow() noexcept {
    std::unique_ptr<CompletionEntry[]> larger(new (std::nothrow) CompletionEntry[2 * capacity_]);
    if (larger == nullptr) return false;
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) larger[i] = at(i);
    entries_ = std::move(larger);
    capacity_ *= 2;
    head_ = 0;
    tail_ = count;
    return true;
  }

  std::size_t capacity_ = 64;  // a power of two
  std::size_t head_ = 0, tail_ = 0;
  std::unique_ptr<CompletionEntry[]> entries_;
};

}  // namespace haul::fabric
