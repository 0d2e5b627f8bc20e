// The memory of one request: up to max_pieces ranges, read and written as one.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/machine/cpu.hpp"
#include "base/private.hpp"
#include "copy/copy.hpp"
#include "fabric/protocol/matcher.hpp"

namespace haul::fabric {

// Copies between a program's memory and packets, without overlap; `prefetching` if both are the
// process's alone. Lines that the other core holds: from two kilobytes on `rep movsb` takes them
// over without fetching them first, where vector stores wait for each (16 KiB between distant
// cores: 1.3 against 3.2 us on an EPYC); below, its start costs more than it saves.
inline void copy_bytes(void* to, const void* from, std::size_t bytes,
                       HaulPrivateCopy way) noexcept {
  constexpr std::size_t line_bytes = 64, string_bytes = 2048;
  if (bytes <= line_bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
  } else if (way == HaulPrivateCopy::strings && bytes >= string_bytes &&
             cpu_features().fast_rep_movsb) {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  } else if (way == HaulPrivateCopy::prefetching) {
    copy::move_bytes(to, from, bytes, Affinity::cacheable, Affinity::cacheable);
  } else {
    copy::move_in_order(to, from, bytes);
  }
}

struct Pieces {
  std::size_t count = 0;
  std::size_t bytes = 0;
  iovec at[max_pieces];  // the first `count`; no others are written or copied

  Pieces() noexcept {}
  Pieces(const Pieces& other) noexcept { *this = other; }
  Pieces& operator=(const Pieces& other) noexcept {
    if (this == &other) return *this;
    count = other.count;
    bytes = other.bytes;
    for (std::size_t i = 0; i < count; ++i) at[i] = other.at[i];
    return *this;
  }
  Pieces(void* address, std::size_t length) noexcept : count(1), bytes(length) {
    at[0] = {address, length};
  }
  Pieces(const iovec* from, std::size_t pieces) noexcept : count(pieces) {
    for (std::size_t i = 0; i < pieces; ++i) {
      at[i] = from[i];
      bytes += from[i].iov_len;
    }
  }

  // The ranges of [offset, offset + length) of the whole, which must lie within it.
  Pieces slice(std::size_t offset, std::size_t length) const noexcept {
    Pieces part;
    for (std::size_t i = 0; i < count && length != 0; ++i) {
      if (offset >= at[i].iov_len) {
        offset -= at[i].iov_len;
        continue;
      }
      const std::size_t take = std::min(length, at[i].iov_len - offset);
      part.at[part.count++] = {static_cast<std::byte*>(at[i].iov_base) + offset, take};
      part.bytes += take;
      length -= take;
      offset = 0;
    }
    return part;
  }
  // To and from contiguous memory; [offset, offset + length) must lie within the whole.
  void gather(std::size_t offset, void* to, std::size_t length,
              HaulPrivateCopy way) const noexcept {
    if (count == 1)
      return copy_bytes(to, static_cast<std::byte*>(at[0].iov_base) + offset, length, way);
    const Pieces part = slice(offset, length);
    auto* cursor = static_cast<std::byte*>(to);
    for (std::size_t i = 0; i < part.count; ++i) {
      copy_bytes(cursor, part.at[i].iov_base, part.at[i].iov_len, way);
      cursor += part.at[i].iov_len;
    }
  }
  void scatter(std::size_t offset, const void* from, std::size_t length,
               HaulPrivateCopy way) const noexcept {
    if (count == 1)
      return copy_bytes(static_cast<std::byte*>(at[0].iov_base) + offset, from, length, way);
    const Pieces part = slice(offset, length);
    auto* cursor = static_cast<const std::byte*>(from);
    for (std::size_t i = 0; i < part.count; ++i) {
      copy_bytes(part.at[i].iov_base, cursor, part.at[i].iov_len, way);
      cursor += part.at[i].iov_len;
    }
  }
};

}  // namespace haul::fabric
