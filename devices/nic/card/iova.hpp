// Where a program's memory lies for a card: addresses behind the IOMMU (IOVA), handed out in whole
// pages to one region after another. Pure; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul::nic {

struct IovaRange {
  std::uint64_t begin = 0, end = 0;
};

class IovaSpace {
 public:
  static constexpr unsigned most_ranges = 16, most_regions = 320;

  // What the IOMMU offers, in any order; ranges beyond the room for them are not used.
  void offer(IovaRange range) noexcept;
  // The lowest free place of so many bytes; 0: there is none. (No place begins at 0.)
  std::uint64_t take(std::uint64_t bytes) noexcept;
  // The place that begins there is free again.
  void give_back(std::uint64_t begin) noexcept;

 private:
  static constexpr std::uint64_t page = 4096;

  IovaRange offered_[most_ranges];
  unsigned ranges_ = 0;
  IovaRange taken_[most_regions];  // in ascending order
  unsigned regions_ = 0;
};

}  // namespace haul::nic
