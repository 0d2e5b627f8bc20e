// Tables that the writer and the reader of a trace fill alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "format/layout.hpp"

namespace bcisim {

// Things numbered in the order of their definitions; after layout::table_entries of them the
// numbers begin at 0 again and replace the older definitions.
template <typename Thing>
class NumberedThings {
 public:
  std::uint32_t define(const Thing& thing) {
    const std::uint32_t number = next_;
    next_ = (next_ + 1) % layout::table_entries;
    if (number == things_.size()) {
      things_.push_back(thing);
    } else {
      things_[number] = thing;
    }
    return number;
  }
  std::size_t size() const { return things_.size(); }
  const Thing& operator[](std::size_t number) const { return things_[number]; }
  Thing& operator[](std::size_t number) { return things_[number]; }
  // The number that the next definition gets.
  std::uint32_t next() const { return next_; }

 private:
  std::vector<Thing> things_;
  std::uint32_t next_ = 0;
};

// The same, for finding a thing's number; hash_of(thing) is the Thing's own.
template <typename Thing>
class NumberOfThing {
 public:
  static constexpr std::uint32_t unknown = 0xffffffff;

  std::uint32_t find(const Thing& thing) const {
    const auto found = numbers_.find(thing);
    return found == numbers_.end() ? unknown : found->second;
  }
  std::uint32_t define(const Thing& thing) {
    if (things_.size() == layout::table_entries) numbers_.erase(things_[things_.next()]);
    const std::uint32_t number = things_.define(thing);
    numbers_[thing] = number;
    return number;
  }

 private:
  struct Hash {
    std::size_t operator()(const Thing& thing) const { return hash_of(thing); }
  };

  NumberedThings<Thing> things_;
  std::unordered_map<Thing, std::uint32_t, Hash> numbers_;
};

}  // namespace bcisim
