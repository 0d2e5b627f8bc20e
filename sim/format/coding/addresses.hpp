// Where references were: what the writer and the reader of a trace both remember, so that most
// addresses take one byte before compression.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/instruction.hpp"

namespace bcisim {

// Every static instruction has a slot for each of its references.
class Addresses {
 public:
  // Codes of an address: where the slot's stride leads; where it was; where it was, moved as far as
  // one of the latest references that moved, the latest first. From explicit_code on: as far as
  // written from where the slot was, or from one of the latest addresses of such a code, the latest
  // first.
  static constexpr std::uint8_t by_stride = 0, unmoved = 1, moved_alike = 2;
  static constexpr unsigned most_moves = 8, most_bases = 15;
  static constexpr std::uint8_t explicit_code = moved_alike + most_moves;
  static constexpr std::uint8_t codes = explicit_code + 1 + most_bases;

  // The first of `count` new slots for an instruction. They begin where the latest reference of the
  // trace was; the instruction's `old_count` slots from `old` on are copied into the first of them.
  std::uint32_t add_slots(unsigned count, std::uint32_t old, unsigned old_count) {
    const auto first = static_cast<std::uint32_t>(slots_.size());
    slots_.resize(slots_.size() + count, {latest_, 0});
    std::copy_n(slots_.begin() + old, old_count, slots_.begin() + first);
    return first;
  }

  // The code that stands for `address`, remembered as happened. `distance`: what is written with an
  // explicit one.
  std::uint8_t encode(std::uint32_t number, std::uint64_t address, std::uint64_t& distance) {
    Slot& slot = slots_[number];
    const std::uint64_t move = address - slot.last;
    std::uint8_t code = by_stride;
    if (move != slot.stride) {
      code = unmoved;
      if (move != 0) {
        const auto known = std::find(moves_.begin(), moves_.end(), move) - moves_.begin();
        code = static_cast<std::uint8_t>(moved_alike + known);
        if (code == explicit_code) code = nearest_base(slot, address, distance);
        to_front(moves_, static_cast<std::size_t>(known), move);
      }
    }
    update(slot, address, move);
    return code;
  }

  // Of a code below explicit_code.
  std::uint64_t decode(std::uint32_t number, std::uint8_t code) {
    Slot& slot = slots_[number];
    std::uint64_t move = code == by_stride ? slot.stride : 0;
    if (code > unmoved) {
      const unsigned known = code - moved_alike;
      move = moves_[known];
      to_front(moves_, known, move);
    }
    const std::uint64_t address = slot.last + move;
    update(slot, address, move);
    return address;
  }
  // Of one from explicit_code on, below codes.
  std::uint64_t decode_explicit(std::uint32_t number, std::uint8_t code, std::uint64_t distance) {
    Slot& slot = slots_[number];
    const std::size_t base = code - explicit_code;
    const std::uint64_t address = (base == 0 ? slot.last : bases_[base - 1]) + distance;
    use_base(base, address);
    to_front(moves_, most_moves, address - slot.last);
    update(slot, address, address - slot.last);
    return address;
  }

 private:
  struct Slot {
    std::uint64_t last, stride;
  };

  void update(Slot& slot, std::uint64_t address, std::uint64_t move) {
    slot.stride = move;
    slot.last = address;
    latest_ = address;
  }

  static std::uint64_t magnitude(std::uint64_t distance) {
    return distance >> 63 != 0 ? ~distance : distance;
  }
  std::uint8_t nearest_base(const Slot& slot, std::uint64_t address, std::uint64_t& distance) {
    std::size_t base = 0;
    distance = address - slot.last;
    for (std::size_t i = 0; i < most_bases; ++i) {
      const std::uint64_t other = address - bases_[i];
      if (magnitude(other) >= magnitude(distance)) continue;
      distance = other;
      base = i + 1;
    }
    use_base(base, address);
    return static_cast<std::uint8_t>(explicit_code + base);
  }
  void use_base(std::size_t base, std::uint64_t address) {
    to_front(bases_, base == 0 ? most_bases : base - 1, address);
  }

  // `value` comes first; number `known`, or when there is none such the last, goes.
  template <std::size_t Count>
  static void to_front(std::array<std::uint64_t, Count>& values, std::size_t known,
                       std::uint64_t value) {
    for (std::size_t i = known < Count ? known : Count - 1; i > 0; --i) values[i] = values[i - 1];
    values[0] = value;
  }

  std::vector<Slot> slots_;
  std::array<std::uint64_t, most_moves> moves_{};
  std::array<std::uint64_t, most_bases> bases_{};
  std::uint64_t latest_ = 0;
};

}  // namespace bcisim
