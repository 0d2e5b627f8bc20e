// What became of large messages, by their size and path, as counters that a report carries.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "fabric/protocol/statistics.hpp"

namespace haul::fabric {

// Sizes by powers of four: class c begins at large_from(c), and the last one has no end.
inline constexpr std::size_t large_classes = 5;
constexpr std::uint64_t large_from(std::size_t size_class) noexcept {
  return std::uint64_t{64} << (10 + 2 * size_class);
}
constexpr std::size_t large_class(std::uint64_t bytes) noexcept {
  std::size_t which = 0;
  while (which + 1 < large_classes && bytes >= large_from(which + 1)) ++which;
  return which;
}

// How long messages took for a byte, in quarters of a power of two. From the median of such counts,
// which can be added up over ranks, one learns what a path takes even where now and then a rank
// computed for a while, and its messages waited.
inline constexpr std::size_t pace_buckets = 56;
inline constexpr unsigned pace_least_log2 =
    5;  // of 1/16 ns a KiB: 2 ns a KiB and less are the first

constexpr std::size_t pace_bucket(std::uint64_t taken_ns, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t most_ns = std::uint64_t{1} << 48;  // three days
  if (taken_ns > most_ns) taken_ns = most_ns;
  const std::uint64_t pace = bytes == 0 ? 0 : (taken_ns << 14) / bytes;
  const auto log2 = static_cast<unsigned>(std::bit_width(pace));  // pace is in [2^(log2-1), 2^log2)
  if (log2 <= pace_least_log2) return 0;
  const std::size_t bucket = 4 * (log2 - 1 - pace_least_log2) + ((pace >> (log2 - 3)) & 3);
  return bucket < pace_buckets ? bucket : pace_buckets - 1;
}
// The middle of a bucket, in ns a byte.
constexpr double pace_of(std::size_t bucket) noexcept {
  const double quarter = (4.5 + static_cast<double>(bucket % 4)) / 4;
  return quarter * static_cast<double>(std::uint64_t{1} << (bucket / 4 + pace_least_log2)) / 16384;
}

// As a report carries them.
struct LargeCounts {
  std::uint64_t messages = 0, bytes = 0;
  std::uint32_t paces[pace_buckets] = {};  // of those that were timed
};

// One writer, under the endpoint's lock; others read relaxed values at any time.
class LargeMessages {
 public:
  // taken_ns 0: it was not timed. `aside`: a thread of haul's has seen its end.
  void count(Path path, std::size_t bytes, std::uint64_t taken_ns, bool aside) noexcept {
    Cell& cell = cells_[large_class(bytes)][static_cast<std::size_t>(path)];
    Statistics::add(cell.messages, 1);
    Statistics::add(cell.bytes, bytes);
    if (taken_ns != 0) {
      std::atomic<std::uint32_t>& pace = cell.paces[pace_bucket(taken_ns, bytes)];
      pace.store(pace.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    if (aside) Statistics::add(aside_, 1);
  }
  void fill(LargeCounts (*counts)[path_count], std::uint64_t* aside) const noexcept {
    for (std::size_t size = 0; size < large_classes; ++size)
      for (std::size_t path = 0; path < path_count; ++path)
        cells_[size][path].fill(&counts[size][path]);
    *aside = aside_.load(std::memory_order_relaxed);
  }

 private:
  struct Cell {
    Statistics::Counter messages{}, bytes{};
    std::atomic<std::uint32_t> paces[pace_buckets] = {};
    void fill(LargeCounts* counts) const noexcept {
      counts->messages = messages.load(std::memory_order_relaxed);
      counts->bytes = bytes.load(std::memory_order_relaxed);
      for (std::size_t i = 0; i < pace_buckets; ++i)
        counts->paces[i] = paces[i].load(std::memory_order_relaxed);
    }
  };
  Cell cells_[large_classes][path_count];
  Statistics::Counter aside_{};
};

}  // namespace haul::fabric
