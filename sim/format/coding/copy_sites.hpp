// Copies of one place in a program resemble each other: what the writer and the reader remember.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bcisim {

struct CopySite {
  std::uint64_t site = 0, destination = 0, source = 0;
};

inline std::size_t hash_of(std::uint64_t site) {
  return static_cast<std::size_t>((site * 0x9e3779b97f4a7c15u) >> 20);
}

// How an event begins in its column.
enum class EventCode : std::uint8_t {
  copy_begin,
  copy_end,
  device_read,
  device_write,
  interrupt,
  codes
};

}  // namespace bcisim
