// Makes frames of instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/addresses.hpp"
#include "format/chunk.hpp"
#include "format/columns.hpp"
#include "format/copy_sites.hpp"
#include "format/numbered.hpp"
#include "format/pages.hpp"
#include "format/rules.hpp"
#include "format/shapes.hpp"
#include "format/successors.hpp"
#include "format/totals.hpp"

namespace bcisim {

// Remembers across frames what FrameDecoder does. Throws FrameError for what breaks the rules.
class FrameEncoder {
 public:
  std::uint32_t add_static(const StaticInstruction& instruction);
  void add(const DynamicInstruction& instruction, std::span<const Reference> references);
  void begin_copy(const CopyCall& call);
  void end_copy();
  void add_device(const DeviceAccess& access);
  void add_interrupt();

  bool empty() const { return statics_of_frame_ + instructions_ + events_ == 0; }
  bool full() const;
  bool copy_open() const { return copies_.open(); }
  const Totals& totals() const { return totals_; }

  // The frame's payload; then a new one begins.
  void close(Compressor& compressor, Bytes& payload);

 private:
  struct Place {
    Shape shape;
    bool known = false;
    std::uint8_t capacity = 0;  // slots
    std::uint32_t slots = 0;
  };

  void add_path(std::uint32_t what);
  bool is_taken(std::uint32_t from, std::uint32_t next) const;
  void settle_previous(bool expected_taken);
  void add_shape(Place& place, const Shape& shape);
  void add_reference(std::uint32_t slot, const Reference& reference);
  void add_event(EventCode code);
  void add_region(std::uint64_t address, std::uint64_t& last,
                  const std::vector<std::uint64_t>& pages, std::uint64_t bytes);

  std::vector<StaticInstruction> statics_;
  std::vector<Place> places_;
  Successors successors_;
  Addresses addresses_;
  Pages pages_;
  NumberOfThing<Shape> shapes_;
  NumberOfThing<Form> forms_;
  NumberOfThing<std::uint64_t> site_numbers_;
  NumberedThings<CopySite> sites_;
  std::uint64_t device_end_ = 0;
  std::uint32_t previous_ = 0;
  bool previous_taken_ = false;
  rules::CopyState copies_;
  Totals totals_;

  // Of the frame being made.
  Columns columns_;
  std::size_t statics_of_frame_ = 0, instructions_ = 0, references_ = 0, events_ = 0;
  std::uint64_t run_ = 0;
  std::size_t shape_exception_ = 0, taken_exception_ = 0, page_exception_ = 0, event_ = 0;
};

}  // namespace bcisim
