// How a request is cut: into at most 31 chunks, all but the last a whole number of blocks, and
// small at both ends, so that the first bytes are there soon and two workers end together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace haul {

// Sizes: unit/2^taper ... unit/4, unit/2 | [unit, 2 unit) | `full` times unit | unit/2, unit/4 ...
// unit/2^taper. The chunk between the bars takes the odd blocks, the very last one the bytes beyond
// the last whole block. A single chunk has full = taper = 0.
struct Chunks {
  static constexpr unsigned max_count = 31;  // bit 31 of the done word says "failed"
  static constexpr unsigned max_taper = 5;

  std::size_t length = 0;
  std::size_t unit = 0;
  std::uint32_t full = 0;
  std::uint32_t taper = 0;
  std::uint32_t block_log2 = 12;

  constexpr unsigned count() const noexcept { return 1 + full + 2 * taper; }
  constexpr std::uint32_t mask() const noexcept { return (std::uint32_t{1} << count()) - 1; }

  constexpr std::size_t begin(unsigned chunk) const noexcept {
    if (chunk >= count()) return length;
    std::size_t at = 0;
    for (unsigned i = 0; i < std::min(chunk, taper); ++i) at += part_bytes(taper - i);
    if (chunk <= taper) return at;
    const unsigned past = chunk - taper - 1;  // chunks behind the odd one
    at += odd_bytes() + std::size_t{std::min(past, full)} * unit;
    for (unsigned k = 1; full + k <= past; ++k) at += part_bytes(k);
    return at;
  }
  constexpr std::size_t end(unsigned chunk) const noexcept { return begin(chunk + 1); }

  // The chunk that holds the byte at `offset` (< length).
  constexpr unsigned holding(std::size_t offset) const noexcept {
    unsigned chunk = 0;
    const std::size_t large = begin(taper + 1);  // behind the odd chunk
    if (offset >= large && unit != 0) {
      const std::size_t nth = (offset - large) / unit;
      chunk = taper + 1 + static_cast<unsigned>(std::min<std::size_t>(nth, full));
    }
    while (chunk + 1 < count() && offset >= begin(chunk + 1)) ++chunk;
    return std::min(chunk, count() - 1);
  }

  static constexpr Chunks single(std::size_t length, std::uint32_t block_log2) noexcept {
    return Chunks{length, length, 0, 0, block_log2};
  }

  // Cuts `length` bytes for two or more workers: units of at least unit_minimum bytes (but two
  // chunks where two fit), no chunk below `minimum`. Few chunks cost least, but fine ends are worth
  // their cost.
  static constexpr Chunks cut(std::size_t length, std::size_t unit_minimum, std::size_t minimum,
                              std::uint32_t block_log2) noexcept {
    const std::size_t block = std::size_t{1} << block_log2;
    const auto round_up = [block](std::size_t bytes) { return (bytes + block - 1) & ~(block - 1); };
    minimum = std::max(round_up(minimum), block);
    const std::size_t whole = length & ~(block - 1);
    if (whole < 2 * minimum) return single(length, block_log2);
    const std::size_t half = (whole / 2) & ~(block - 1);
    const std::size_t unit =
        std::max({round_up(whole / 20), std::min(round_up(unit_minimum), half), minimum});
    Chunks chunks{length, unit, 0, 0, block_log2};
    std::size_t ends = 0;  // of both tapers
    while (chunks.taper < max_taper) {
      const std::size_t part = chunks.part_bytes(chunks.taper + 1);
      if (part < minimum || whole - ends < 2 * part + unit) break;
      ends += 2 * part;
      ++chunks.taper;
    }
    chunks.full = static_cast<std::uint32_t>((whole - ends) / unit - 1);
    return chunks;
  }

 private:
  constexpr std::size_t part_bytes(unsigned k) const noexcept {
    return (unit >> k) & ~((std::size_t{1} << block_log2) - 1);
  }
  constexpr std::size_t odd_bytes() const noexcept {
    if (full + taper == 0) return length;
    std::size_t rest = length & ~((std::size_t{1} << block_log2) - 1);
    for (unsigned k = 1; k <= taper; ++k) rest -= 2 * part_bytes(k);
    return rest - std::size_t{full} * unit;
  }
};

}  // namespace haul
