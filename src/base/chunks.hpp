// How a request is cut: at most 31 chunks, all but the last a whole number of blocks, with a tail
// of halving sizes so that two workers end together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace haul {

// Chunk 0 has the odd blocks, [unit, 2 unit); then `full` chunks of `unit`; then `tail` chunks of
// unit/2, unit/4, ...; the last chunk also has the bytes beyond the last whole block. A single
// chunk has full = tail = 0.
struct Chunks {
  static constexpr unsigned max_count = 31;  // bit 31 of the done word says "failed"
  static constexpr unsigned max_tail = 5;

  std::size_t length = 0;
  std::size_t unit = 0;
  std::uint32_t full = 0;
  std::uint32_t tail = 0;
  std::uint32_t block_log2 = 12;

  constexpr unsigned count() const noexcept { return 1 + full + tail; }
  constexpr std::uint32_t mask() const noexcept { return (std::uint32_t{1} << count()) - 1; }

  constexpr std::size_t begin(unsigned chunk) const noexcept {
    if (chunk == 0) return 0;
    if (chunk >= count()) return length;
    std::size_t at = first() + std::size_t{chunk <= full ? chunk - 1 : full} * unit;
    for (unsigned k = 1; full + k < chunk; ++k) at += tail_bytes(k);
    return at;
  }
  constexpr std::size_t end(unsigned chunk) const noexcept { return begin(chunk + 1); }

  // The chunk that holds the byte at `offset` (< length).
  constexpr unsigned holding(std::size_t offset) const noexcept {
    const std::size_t first_end = first();
    if (offset < first_end || count() == 1) return 0;
    const std::size_t nth = unit == 0 ? 0 : (offset - first_end) / unit;
    unsigned chunk = 1 + static_cast<unsigned>(std::min<std::size_t>(nth, full));
    while (chunk + 1 < count() && offset >= begin(chunk + 1)) ++chunk;
    return std::min(chunk, count() - 1);
  }

  static constexpr Chunks single(std::size_t length, std::uint32_t block_log2) noexcept {
    return Chunks{length, length, 0, 0, block_log2};
  }

  // Cuts `length` bytes for two or more workers: units of at least unit_minimum bytes (but two
  // chunks where two fit), and a tail down to `minimum`. Few chunks cost least, a fine tail ends
  // together.
  static constexpr Chunks cut(std::size_t length, std::size_t unit_minimum, std::size_t minimum,
                              std::uint32_t block_log2) noexcept {
    const std::size_t block = std::size_t{1} << block_log2;
    const auto round_up = [block](std::size_t bytes) { return (bytes + block - 1) & ~(block - 1); };
    minimum = std::max(round_up(minimum), block);
    const std::size_t whole = length & ~(block - 1);
    if (whole < 2 * minimum) return single(length, block_log2);
    const std::size_t half = (whole / 2) & ~(block - 1);
    const std::size_t unit =
        std::max({round_up(whole / 22), std::min(round_up(unit_minimum), half), minimum});
    Chunks chunks{length, unit, 0, 0, block_log2};
    std::size_t tail_total = 0;
    while (chunks.tail < max_tail && chunks.tail_bytes(chunks.tail + 1) >= minimum) {
      tail_total += chunks.tail_bytes(++chunks.tail);
    }
    chunks.full = static_cast<std::uint32_t>((whole - tail_total) / chunks.unit - 1);
    return chunks;
  }

 private:
  constexpr std::size_t tail_bytes(unsigned k) const noexcept {
    return (unit >> k) & ~((std::size_t{1} << block_log2) - 1);
  }
  constexpr std::size_t first() const noexcept {
    if (full + tail == 0) return length;
    std::size_t rest = length & ~((std::size_t{1} << block_log2) - 1);
    for (unsigned k = 1; k <= tail; ++k) rest -= tail_bytes(k);
    return rest - std::size_t{full} * unit;
  }
};

}  // namespace haul
