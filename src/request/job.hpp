// A request as it lies in a ring: one hot line of parameters, one cold line for what few requests
// ask for.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/affinity.hpp"
#include "base/chunks.hpp"
#include "base/extent.hpp"
#include "base/pattern.hpp"
#include "completion/queue.hpp"

namespace haul {

// What a worker needs to know to move bytes: a private copy of line P.
struct Job {
  std::uint64_t seq = 0;
  Operation operation = Operation::copy;
  Affinity dst_affinity = Affinity::cacheable;
  Affinity src_affinity = Affinity::cacheable;
  std::uint8_t pattern_bytes = 8;
  std::uint8_t engine = 0;
  bool fence = false;  // starts after all earlier ones of its ring
  bool checked = false;
  bool extras = false;   // line Q counts
  bool service = false;  // the node's service moves it, not a mover of this process
  // With whose rights another process's memory is reached (request/rights.hpp); 0 where none is.
  std::uint8_t rights = 0;
  Space dst_space = self_space, src_space = self_space;
  std::uintptr_t dst = 0;
  std::uint64_t src_or_pattern = 0;
  std::uint32_t segment_first = 0, segment_count = 0;  // 0: one extent a side
  Chunks chunks;

  // Is all of it in the memory of the process that submitted it?
  bool is_local() const noexcept {
    return dst_space == self_space && (operation == Operation::fill || src_space == self_space);
  }
};

// Line P: written by the ring's owner only, read by workers word by word (a copy may tear; see
// Tenancy::claim).
struct alignas(64) Parameters {
  std::atomic<std::uint64_t> seq{0};
  std::atomic<std::uint64_t> dst{0};
  std::atomic<std::uint64_t> src_or_pattern{0};
  std::atomic<std::uint64_t> length{0};
  std::atomic<std::uint64_t> unit{0};
  std::atomic<std::uint64_t> spaces{0};    // {dst 32 | src 32}
  std::atomic<std::uint64_t> segments{0};  // {first 32 | count 32}
  std::atomic<std::uint64_t> packed{0};    // see pack()

  // Owner: fills the line and publishes it under job.seq.
  void publish(const Job& job) noexcept {
    dst.store(job.dst, std::memory_order_relaxed);
    src_or_pattern.store(job.src_or_pattern, std::memory_order_relaxed);
    length.store(job.chunks.length, std::memory_order_relaxed);
    unit.store(job.chunks.unit, std::memory_order_relaxed);
    spaces.store(std::uint64_t{job.dst_space} << 32 | job.src_space, std::memory_order_relaxed);
    segments.store(std::uint64_t{job.segment_first} << 32 | job.segment_count,
                   std::memory_order_relaxed);
    packed.store(pack(job), std::memory_order_relaxed);
    // Release: pairs with the acquire load in read() and in the movers' poll.
    seq.store(job.seq, std::memory_order_release);
  }

  // Worker: true if the line belongs to `wanted` now; *job is then its parameters, or a torn copy
  // if that tenancy is over.
  bool read(std::uint64_t wanted, Job* job) const noexcept {
    if (seq.load(std::memory_order_acquire) != wanted) return false;
    // Acquire on each word: a reader that then finds the tenancy still going has read no later
    // tenancy's words.
    const std::uint64_t bits = packed.load(std::memory_order_acquire);
    const std::uint64_t both = spaces.load(std::memory_order_acquire);
    const std::uint64_t vector = segments.load(std::memory_order_acquire);
    job->seq = wanted;
    job->dst = dst.load(std::memory_order_acquire);
    job->src_or_pattern = src_or_pattern.load(std::memory_order_acquire);
    job->dst_space = static_cast<Space>(both >> 32);
    job->src_space = static_cast<Space>(both);
    job->segment_first = static_cast<std::uint32_t>(vector >> 32);
    job->segment_count = static_cast<std::uint32_t>(vector);
    job->operation = static_cast<Operation>(bits & 1);
    job->fence = (bits >> 1 & 1) != 0;
    job->checked = (bits >> 2 & 1) != 0;
    job->extras = (bits >> 3 & 1) != 0;
    job->service = (bits >> 40 & 1) != 0;
    job->rights = static_cast<std::uint8_t>(bits >> 41 & 63);
    job->dst_affinity = static_cast<Affinity>(bits >> 4 & 3);
    job->src_affinity = static_cast<Affinity>(bits >> 6 & 3);
    job->pattern_bytes = static_cast<std::uint8_t>(bits >> 8 & 15);
    job->engine = static_cast<std::uint8_t>(bits >> 12 & 15);
    job->chunks = Chunks{
        length.load(std::memory_order_acquire), unit.load(std::memory_order_acquire),
        static_cast<std::uint32_t>(bits >> 16 & 31), static_cast<std::uint32_t>(bits >> 24 & 7),
        static_cast<std::uint32_t>(bits >> 32 & 31)};
    return true;
  }

 private:
  static std::uint64_t pack(const Job& job) noexcept {
    return static_cast<std::uint64_t>(job.operation) | std::uint64_t{job.fence} << 1 |
           std::uint64_t{job.checked} << 2 | std::uint64_t{job.extras} << 3 |
           static_cast<std::uint64_t>(job.dst_affinity) << 4 |
           static_cast<std::uint64_t>(job.src_affinity) << 6 |
           std::uint64_t{job.pattern_bytes} << 8 | std::uint64_t{job.engine} << 12 |
           std::uint64_t{job.chunks.full} << 16 | std::uint64_t{job.chunks.taper} << 24 |
           std::uint64_t{job.chunks.block_log2} << 32 | std::uint64_t{job.service} << 40 |
           std::uint64_t{job.rights} << 41;
  }
};

// Line Q: read only by the last finisher, whose claim pins the slot.
struct alignas(64) Extras {
  std::atomic<std::uint64_t>* notify = nullptr;
  std::uint64_t notify_value = 0;
  std::uint64_t user_data = 0;
  CompletionCallback callback = nullptr;
  void* context = nullptr;
  bool post = false;  // to the ring's completion queue
};

// One piece of a vector: both sides contiguous. `offset` is where it begins in the request.
struct Segment {
  std::uint64_t offset = 0;
  std::uintptr_t dst = 0;
  std::uintptr_t src = 0;
};

}  // namespace haul
