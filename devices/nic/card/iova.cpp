#include "devices/nic/card/iova.hpp"

#include <algorithm>

namespace haul::nic {

void IovaSpace::offer(IovaRange range) noexcept {
  const std::uint64_t begin = std::max((range.begin + page - 1) & ~(page - 1), page);
  const std::uint64_t end = range.end & ~(page - 1);
  if (begin < end && ranges_ < most_ranges) offered_[ranges_++] = {begin, end};
}

std::uint64_t IovaSpace::take(std::uint64_t bytes) noexcept {
  bytes = (bytes + page - 1) & ~(page - 1);
  if (bytes == 0 || regions_ == most_regions) return 0;
  for (unsigned range = 0; range < ranges_; ++range) {
    std::uint64_t begin = offered_[range].begin;
    unsigned before = 0;  // how many regions lie below `begin`
    for (; before < regions_; ++before) {
      const IovaRange& other = taken_[before];
      if (other.end <= begin) continue;
      if (other.begin >= begin && other.begin - begin >= bytes) break;
      begin = std::max(begin, other.end);
    }
    if (begin >= offered_[range].end || offered_[range].end - begin < bytes) continue;
    std::copy_backward(taken_ + before, taken_ + regions_, taken_ + regions_ + 1);
    taken_[before] = {begin, begin + bytes};
    ++regions_;
    return begin;
  }
  return 0;
}

void IovaSpace::give_back(std::uint64_t begin) noexcept {
  for (unsigned at = 0; at < regions_; ++at) {
    if (taken_[at].begin != begin) continue;
    std::copy(taken_ + at + 1, taken_ + regions_, taken_ + at);
    --regions_;
    return;
  }
}

}  // namespace haul::nic
