// What happens between the instructions of a trace: copies begin and end, devices reach memory,
// interrupts come.
#pragma once

#include <cstdint>
#include <vector>

namespace bcisim {

enum class CopyKind : std::uint8_t {
  copy,  // memcpy and its like, copy_page
  from_user,
  to_user,
  user,           // between user and kernel, direction not known
  with_checksum,  // the routine sums what it copies: no bulk instruction can stand for it
  fill            // memset, clear_page: no source
};
inline constexpr unsigned copy_kinds = 6;

// A copy routine was called. Its instructions follow, up to Event::copy_end; a bulk copy
// instruction may take their place. An interrupt or fault within the routine ends the call; what is
// left of it afterwards comes as a call of its own.
struct CopyCall {
  CopyKind kind = CopyKind::copy;
  std::uint64_t site = 0;                     // virtual address to which the routine returns
  std::uint64_t destination = 0, source = 0;  // virtual
  std::uint64_t bytes = 0;                    // 1 or more
  // Physical page numbers, in order, of the pages that each region touches (source: none for a
  // fill).
  std::vector<std::uint64_t> destination_pages, source_pages;
};

// A device read or wrote memory (DMA).
struct DeviceAccess {
  std::uint64_t physical = 0, bytes = 0;
  bool writes = false;
};

struct Event {
  enum class Kind : std::uint8_t {
    copy_begin,  // index: into Chunk::copies
    copy_end,
    device,    // index: into Chunk::devices
    interrupt  // the next instruction is the first of an interrupt's or a fault's handler
  };
  Kind kind = Kind::device;
  std::uint32_t before = 0;  // the instruction that it precedes; may be one past the chunk's last
  std::uint32_t index = 0;
};

}  // namespace bcisim
