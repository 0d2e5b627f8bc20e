// Makes frames of instructions (format/README.md has the columns).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/coding/columns.hpp"
#include "format/coding/frame_memory.hpp"

namespace bcisim {

// Throws FrameError for what breaks the rules.
class FrameEncoder : public FrameMemory {
 public:
  std::uint32_t add_static(const StaticInstruction& instruction);
  void add(const DynamicInstruction& instruction, std::span<const Reference> references);
  void begin_copy(const CopyCall& call);
  void end_copy();
  void add_device(const DeviceAccess& access);
  void add_interrupt();

  bool empty() const { return statics_of_frame_ + instructions_ + events_ == 0; }
  bool full() const;

  // The frame's payload; then a new one begins.
  void close(Compressor& compressor, Bytes& payload);

 private:
  void add_path(std::uint32_t what);
  void settle_previous(bool expected_taken);
  void add_shape(Place& place, const Shape& shape);
  void add_reference(std::uint32_t slot, const Reference& reference);
  void add_event(EventCode code);
  void add_region(std::uint64_t address, std::uint64_t& last,
                  const std::vector<std::uint64_t>& pages, std::uint64_t bytes);

  NumberOfThing<Shape> shapes_;
  NumberOfThing<Form> forms_;
  NumberOfThing<std::uint64_t> site_numbers_;
  bool previous_taken_ = false;

  // Of the frame being made.
  Columns columns_;
  std::size_t statics_of_frame_ = 0, instructions_ = 0, references_ = 0, events_ = 0;
  std::uint64_t run_ = 0;
  std::size_t shape_exception_ = 0, taken_exception_ = 0, page_exception_ = 0, event_ = 0;
};

}  // namespace bcisim
