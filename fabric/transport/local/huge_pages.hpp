// Knows which buffers lie on huge pages, and moves buffers there that are used again and again: the
// kernel copies such memory between processes three times faster (process_vm_readv pins pages one
// by one). It only remembers what it has seen. A buffer may be unmapped, and other memory mapped
// there, at any time, so the answers may be wrong, and only speed may depend on them.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/os/descriptor.hpp"

namespace haul::fabric {

class HugePages {
 public:
  HugePages() noexcept = default;
  ~HugePages();
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  // Notes a use of the private memory [address, address + bytes). True if nearly all of it lies on
  // huge pages. Asks the kernel now and then (about a microsecond), and has the buffer moved there
  // at the uses_before_collapse-th use (0.2 to 0.6 ms a MiB, once).
  bool use(const void* address, std::size_t bytes) noexcept;

  static constexpr std::size_t smallest_bytes = std::size_t{256} << 10;  // less is never asked for
  static constexpr std::size_t collapse_bytes = std::size_t{1} << 20;    // less is never moved
  static constexpr std::uint32_t uses_before_collapse = 50;

 private:
  struct Buffer {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    std::uint32_t uses = 0;
    std::uint32_t collapse_at = uses_before_collapse;  // grows with each failure
    std::uint32_t ask_at = 1;
    bool huge = false;
  };
  bool lies_on_huge(const Buffer& buffer) noexcept;
  bool collapse(const Buffer& buffer) noexcept;

  static constexpr std::size_t buffer_count = 256;
  Buffer buffers_[buffer_count];
  os::Descriptor page_map_;
  bool page_map_tried_ = false;
};

}  // namespace haul::fabric
