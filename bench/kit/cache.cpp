// Cache states: touch, sweep, flush.
#include "bench/kit/cache.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "base/os/os.hpp"
#include "bench/kit/work.hpp"
#include "copy/cache_lines.hpp"

namespace haul::bench {
namespace {

// A state is measured up to these sizes; beyond them most bytes would be in another state.
constexpr std::size_t hot_limit_bytes = std::size_t{256} << 10;
constexpr std::size_t l3_limit_bytes = std::size_t{8} << 20;

}  // namespace

const char* cache_name(CacheState cache) {
  switch (cache) {
    case CacheState::hot: return "hot";
    case CacheState::l3: return "l3";
    case CacheState::cold: return "cold";
    case CacheState::peer: return "peer";
  }
  return "";
}

void touch(const std::byte* data, std::size_t bytes) {
  keep(vector_sum(data, bytes));
}

void rewrite_elsewhere(std::byte* data, std::size_t bytes, unsigned cpu) {
  std::thread writer([=] {
    os::pin_thread(cpu);
    for (std::size_t i = 0; i < bytes; i += line_bytes) {
      auto* const byte = reinterpret_cast<volatile std::byte*>(data + i);
      *byte = *byte;
    }
  });
  writer.join();
}

void flush(const std::byte* data, std::size_t bytes) {
  std::size_t into_line = reinterpret_cast<std::uintptr_t>(data) % line_bytes;
  std::size_t lines = (into_line + bytes + line_bytes - 1) / line_bytes;
  const std::byte* first = data - into_line;
  copy::flush_lines(first, first + lines * line_bytes);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

CachePreparer::CachePreparer(const Topology& topology)
    : l2_bytes_(topology.l2_bytes != 0 ? topology.l2_bytes : std::size_t{1} << 20),
      l3_bytes_(topology.l3_bytes != 0 ? topology.l3_bytes : std::size_t{16} << 20),
      sweep_(2 * l2_bytes_) {}

void CachePreparer::prepare(CacheState cache, const std::byte* a, const std::byte* b,
                            std::size_t bytes) {
  if (cache == CacheState::cold) {
    flush(a, bytes);
    flush(b, bytes);
    return;
  }
  touch(b, bytes);
  touch(a, bytes);
  if (cache == CacheState::l3) touch(sweep_.data(), sweep_.size());
}

std::size_t CachePreparer::largest(CacheState cache) const {
  if (cache == CacheState::hot) return std::min(hot_limit_bytes, l2_bytes_ / 2);
  if (cache == CacheState::l3) return std::min(l3_limit_bytes, l3_bytes_ / 2);
  return ~std::size_t{0};
}

}  // namespace haul::bench
