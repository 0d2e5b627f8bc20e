// The rules that every trace keeps: the writer and the reader both check them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/bytes.hpp"
#include "format/event.hpp"
#include "format/instruction.hpp"
#include "format/layout.hpp"

namespace bcisim::rules {

inline bool valid(const StaticInstruction& instruction) {
  constexpr std::uint64_t masks = (std::uint64_t{1} << registers) - 1;
  return instruction.bytes >= 1 && instruction.bytes <= layout::most_instruction_bytes &&
         static_cast<unsigned>(instruction.kind) < instruction_classes &&
         instruction.reads <= masks && instruction.writes <= masks &&
         (instruction.steps & ~(instruction.reads & instruction.writes)) == 0 &&
         instruction.physical_page <= layout::most_page;
}

// Within one page, and as far into the physical as into the virtual one.
inline bool valid(const Reference& reference) {
  const std::uint64_t into = reference.address % layout::page_bytes;
  return reference.bytes >= 1 && reference.bytes <= layout::most_reference_bytes &&
         into + reference.bytes <= layout::page_bytes &&
         reference.physical % layout::page_bytes == into;
}

inline bool valid(const DeviceAccess& access) {
  return access.bytes >= 1 && access.bytes <= layout::most_device_bytes &&
         access.physical <= ~std::uint64_t{0} - access.bytes;
}

// The number of pages that a region touches.
inline std::size_t pages_of(std::uint64_t address, std::uint64_t bytes) {
  return static_cast<std::size_t>((address % layout::page_bytes + bytes + layout::page_bytes - 1) /
                                  layout::page_bytes);
}

// Does a region of a copy lie within the address space?
inline bool valid_region(std::uint64_t address, std::uint64_t bytes) {
  return bytes >= 1 && bytes <= layout::most_copy_bytes && address <= ~std::uint64_t{0} - bytes;
}

// Copies begin and end in turn.
class CopyState {
 public:
  void begin() {
    if (open_) throw FrameError("a copy begins within another");
    open_ = true;
  }
  void end() {
    if (!open_) throw FrameError("a copy ends that has not begun");
    open_ = false;
  }
  bool open() const { return open_; }

 private:
  bool open_ = false;
};

}  // namespace bcisim::rules
