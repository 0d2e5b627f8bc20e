// What a large call of the program asks for: a copy or a fill, which are carried out in the same
// ways.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/extent.hpp"
#include "preload/mem/front.hpp"

namespace haul::preload {

struct LargeCall {
  Operation operation;
  std::uintptr_t dst;
  std::uintptr_t src_or_value;
  std::size_t length;

  // A part of it, by libc's function.
  void by_libc(std::size_t offset, std::size_t bytes) const noexcept {
    void* to = reinterpret_cast<void*>(dst + offset);
    if (operation == Operation::copy) {
      front.copy(to, reinterpret_cast<const void*>(src_or_value + offset), bytes);
    } else {
      front.set(to, static_cast<int>(src_or_value), bytes);
    }
  }
};

}  // namespace haul::preload
