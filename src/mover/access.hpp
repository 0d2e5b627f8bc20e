// Looking at a request's memory, for route(): a timed read of the source, then, for long requests,
// a question about the destination's pages (a system call; memory/new_pages.hpp states its price).
#pragma once

#include "copy/cache_lines.hpp"
#include "memory/new_pages.hpp"
#include "plan/route.hpp"

namespace haul {

inline plan::Access access_of_fill(std::uintptr_t dst, std::size_t length) noexcept {
  return pages_missing(dst, length) ? plan::Access::new_pages : plan::Access::cached;
}

inline plan::Access access_of_copy(std::uintptr_t dst, std::size_t dst_length, std::uintptr_t src,
                                   std::size_t src_length) noexcept {
  return copy::in_memory(reinterpret_cast<const void*>(src), src_length)
             ? plan::Access::in_memory
             : access_of_fill(dst, dst_length);
}

}  // namespace haul
