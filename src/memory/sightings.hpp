// Which memory comes again: the last ranges that somebody had moved, for who registers memory only
// where it will be moved more than once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul {

// One thread at a time. Zero-initialized, it has seen nothing.
class Sightings {
 public:
  enum class Seen : std::uint8_t {
    first,    // by nobody before
    same,     // by this request only
    again,    // another one had all of it moved before
    passing,  // it cannot stay registered: it lies in memory of which that is known
    refused,  // it cannot be registered
  };

  // Notes that `asker` (a request, by a number of its own) has [begin, end) moved.
  Seen look(std::uintptr_t begin, std::uintptr_t end, std::uint64_t asker) noexcept {
    if (const Sighting* const known = find(begin, end); known != nullptr)
      return known->verdict != Seen::first ? known->verdict
             : known->asker != asker       ? Seen::again
                                           : Seen::same;
    seen_[next_] = {begin, end, asker, Seen::first};
    next_ = (next_ + 1) % room;
    return Seen::first;
  }

  // That range is `verdict`, passing or refused, from now on.
  void judge(std::uintptr_t begin, std::uintptr_t end, Seen verdict) noexcept {
    if (Sighting* const known = find(begin, end); known != nullptr) known->verdict = verdict;
  }

  // Memory that lies in the range is other memory from now on.
  void forget(std::uintptr_t begin, std::uintptr_t end) noexcept {
    for (Sighting& one : seen_)
      if (one.begin < end && begin < one.end) one = {};
  }

 private:
  static constexpr unsigned room = 32;

  struct Sighting {
    std::uintptr_t begin = 0, end = 0;
    std::uint64_t asker = 0;
    Seen verdict = Seen::first;  // none
  };

  Sighting* find(std::uintptr_t begin, std::uintptr_t end) noexcept {
    for (Sighting& one : seen_)
      if (one.begin <= begin && end <= one.end && one.end != 0) return &one;
    return nullptr;
  }

  Sighting seen_[room];
  unsigned next_ = 0;
};

}  // namespace haul
