// What a matcher counts, for `haul top`, `haul run --report` and the tests. One writer (under the
// endpoint's lock); others read relaxed values at any time.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace haul::fabric {

enum class Path : std::uint8_t {
  inlined,  // in the packet's header
  eager,    // packets, unasked
  ring,     // pieces through shared cells, two copies
  mapped,   // one copy through a mapping
  cma,      // one copy by the kernel
  offnode,  // packets and reads by the carrier to other nodes
  count_
};
inline constexpr std::size_t path_count = static_cast<std::size_t>(Path::count_);
inline constexpr const char* path_names[path_count] = {"inline", "eager", "ring",
                                                       "mapped", "cma",   "offnode"};

struct Statistics {
  using Counter = std::atomic<std::uint64_t>;
  // Bucket b: sizes of b significant bits (0: empty messages; 1: one byte; 2: 2 and 3; ...).
  static constexpr std::size_t size_buckets = 48;

  Counter sent_messages[path_count] = {}, sent_bytes[path_count] = {};
  Counter received_messages = {}, received_bytes = {};
  Counter sizes[size_buckets] = {};                         // of what was sent
  Counter unexpected_messages = {}, unexpected_bytes = {};  // kept now
  Counter passed_over = {};  // receives and messages that were looked at and did not match
  Counter copies_in_flight = {};
  Counter fallbacks = {};  // transfers that had to take a slower path than planned
  Counter peers = {};      // known now
  Counter rma_operations = {}, atomic_operations = {};

  // Counts down with amount ~0.
  static void add(Counter& counter, std::uint64_t amount) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void count_sent(Path path, std::uint64_t bytes) noexcept {
    const auto index = static_cast<std::size_t>(path);
    add(sent_messages[index], 1);
    add(sent_bytes[index], bytes);
    add(sizes[static_cast<std::size_t>(std::bit_width(bytes)) % size_buckets], 1);
  }
};

}  // namespace haul::fabric
