// What FrameEncoder and FrameDecoder both remember from frame to frame. A trace is small because it
// tells only what these tables do not foresee, so both ends must fill them alike, in the same
// order: each static instruction once, each shape when it replaces another, each reference's
// address and page, each copy's site, each device's access. format/README.md has the rules of every
// table.
//
// A Place is a static instruction's part of that: the shape of its last execution, and the slots of
// `addresses_` that its references have. Slots are made when a shape asks for more than there are:
// as many as it has references the first time, most_references the second.
#pragma once

#include <cstdint>
#include <vector>

#include "format/coding/addresses.hpp"
#include "format/coding/copy_sites.hpp"
#include "format/coding/numbered.hpp"
#include "format/coding/shapes.hpp"
#include "format/coding/successors.hpp"
#include "format/pages.hpp"
#include "format/rules.hpp"
#include "format/totals.hpp"

namespace bcisim {

class FrameMemory {
 public:
  const std::vector<StaticInstruction>& statics() const { return statics_; }
  const Totals& totals() const { return totals_; }
  bool copy_open() const { return copies_.open(); }

 protected:
  struct Place {
    Shape shape;
    bool known = false;
    std::uint8_t capacity = 0;  // slots
    std::uint32_t slots = 0;
  };

  // The static instruction that the next one is told relative to.
  StaticInstruction last_static() const {
    return statics_.empty() ? StaticInstruction{} : statics_.back();
  }
  void append_static(const StaticInstruction& instruction) {
    statics_.push_back(instruction);
    places_.emplace_back();
    successors_.add();
    ++totals_.statics;
  }
  // Is `from` a branch that does not go on to the instruction behind it?
  bool is_taken(std::uint32_t from, std::uint32_t next) const {
    const StaticInstruction& instruction = statics_[from];
    return instruction.kind == InstructionClass::branch &&
           instruction.address + instruction.bytes != statics_[next].address;
  }
  void set_shape(Place& place, const Shape& shape) {
    place.known = true;
    place.shape = shape;
    if (shape.references <= place.capacity) return;
    const unsigned wanted = place.capacity == 0 ? shape.references : most_references;
    place.slots = addresses_.add_slots(wanted, place.slots, place.capacity);
    place.capacity = static_cast<std::uint8_t>(wanted);
  }

  std::vector<StaticInstruction> statics_;
  std::vector<Place> places_;
  Successors successors_;
  Addresses addresses_;
  Pages pages_;
  NumberedThings<CopySite> sites_;
  std::uint64_t device_end_ = 0;
  std::uint32_t previous_ = 0;  // the instruction executed last
  rules::CopyState copies_;
  Totals totals_;
};

}  // namespace bcisim
