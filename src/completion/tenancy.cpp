#include "completion/tenancy.hpp"

#include <bit>

#include "base/os/os.hpp"
#include "base/sync/barrier.hpp"

namespace haul {
namespace {

constexpr std::uint32_t failed_bit = std::uint32_t{1} << 31;

constexpr std::uint32_t generation_of(std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word >> 32);
}

// Generations wrap after 2^32 tenancies of a slot; compare them as distances.
constexpr bool newer(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) > 0;
}

// The bits of a word as `generation` sees them: those of an older tenancy read as none.
constexpr std::uint32_t bits_for(std::uint64_t word, std::uint32_t generation) noexcept {
  return generation_of(word) == generation ? static_cast<std::uint32_t>(word) : 0;
}

constexpr std::uint64_t pack(std::uint32_t generation, std::uint32_t bits) noexcept {
  return std::uint64_t{generation} << 32 | bits;
}

}  // namespace

void count_out(std::atomic<std::uint32_t>& count) noexcept {
  std::uint32_t seen = count.load(std::memory_order_relaxed);
  // Release: what was done while counted in comes first.
  while (seen != 0 && !count.compare_exchange_weak(seen, seen - 1, std::memory_order_release,
                                                   std::memory_order_relaxed)) {
  }
}

int Tenancy::claim(const Chunks& chunks, std::uint32_t only) const noexcept {
  const std::uint32_t mask = chunks.mask();
  std::uint64_t word = claims->claim.load(std::memory_order_relaxed);
  for (std::uint32_t attempt = 1;; ++attempt) {
    if (newer(generation_of(word), generation)) return -1;
    const std::uint32_t taken = bits_for(word, generation);
    const std::uint32_t free = mask & ~taken & only;
    if (free == 0) return -1;
    const std::uint32_t wanted =
        bits_for(claims->wanted.load(std::memory_order_relaxed), generation) & free;
    const int chunk = std::countr_zero(wanted != 0 ? wanted : free);
    // Chunks that do not exist are claimed along with the first one: a worker whose copy of the
    // parameters is torn, and which believes in more chunks than there are, then finds none of them
    // free.
    const std::uint32_t bits = taken | ~mask | std::uint32_t{1} << chunk;
    // Acquire-release: pairs with the other workers' claims, and pins the slot before its bytes are
    // touched.
    if (claims->claim.compare_exchange_weak(word, pack(generation, bits), std::memory_order_acq_rel,
                                            std::memory_order_relaxed)) {
      return chunk;
    }
    if (attempt == attempts) return -1;
  }
}

bool Tenancy::claimable(const Chunks& chunks) const noexcept {
  const std::uint64_t word = claims->claim.load(std::memory_order_relaxed);
  return !newer(generation_of(word), generation) &&
         (chunks.mask() & ~bits_for(word, generation)) != 0;
}

std::uint32_t Tenancy::unreported(const Chunks& chunks) const noexcept {
  const std::uint32_t claimed = bits_for(claims->claim.load(std::memory_order_acquire), generation);
  return claimed & ~bits_for(claims->done.load(std::memory_order_acquire), generation) &
         chunks.mask();
}

std::uint32_t Tenancy::reported(const Chunks& chunks) const noexcept {
  return bits_for(claims->done.load(std::memory_order_acquire), generation) & chunks.mask();
}

bool Tenancy::all_reported(const Chunks& chunks, bool* failed) const noexcept {
  const std::uint32_t bits = bits_for(claims->done.load(std::memory_order_acquire), generation);
  *failed = (bits & failed_bit) != 0;
  return (bits & chunks.mask()) == chunks.mask();
}

Tenancy::Finish Tenancy::finish(unsigned chunk, bool failed, const Chunks& chunks) const noexcept {
  const std::uint32_t mask = chunks.mask();
  std::uint64_t word = claims->done.load(std::memory_order_relaxed);
  for (std::uint32_t attempt = 1;; ++attempt) {
    const std::uint32_t bits =
        bits_for(word, generation) | std::uint32_t{1} << chunk | (failed ? failed_bit : 0);
    // Release: this chunk's bytes before its bit. Acquire: the last finisher sees the others'
    // bytes, and publishes them with the state.
    if (claims->done.compare_exchange_weak(word, pack(generation, bits), std::memory_order_acq_rel,
                                           std::memory_order_relaxed)) {
      return Finish{(bits & mask) == mask, (bits & failed_bit) != 0};
    }
    if (attempt == attempts) return Finish{.last = false, .failed = failed, .gave_up = true};
  }
}

void Tenancy::end(Code code) const noexcept {
  // Release: everything this tenancy wrote. Pairs with the acquire load of test and wait.
  state->word.store(State::make(seq, code), std::memory_order_release);
  // A waiter raises `sleepers`, issues a membarrier and looks at the state again, so a plain load
  // suffices here.
  os::compiler_barrier();
  if (claims->sleepers.load(std::memory_order_relaxed) != 0) {
    wake();
  }
}

void Tenancy::wake() const noexcept {
  // Shared: the ring may lie in memory that the node's service maps too.
  os::futex_wake_shared(reinterpret_cast<const std::atomic<std::uint32_t>*>(&state->word), 1 << 30);
}

void Tenancy::want(std::uint32_t chunk_bits) const noexcept {
  std::uint64_t word = claims->wanted.load(std::memory_order_relaxed);
  for (;;) {
    if (newer(generation_of(word), generation)) return;
    const std::uint32_t bits = bits_for(word, generation);
    if ((bits & chunk_bits) == chunk_bits) return;
    if (claims->wanted.compare_exchange_weak(word, pack(generation, bits | chunk_bits),
                                             std::memory_order_relaxed)) {
      return;
    }
  }
}

std::size_t Tenancy::visible_in_chunk(const Chunks& chunks, unsigned chunk,
                                      std::uint32_t done) const noexcept {
  const std::size_t bytes = chunks.end(chunk) - chunks.begin(chunk);
  if ((done >> chunk & 1) != 0) return bytes;
  // Acquire: pairs with the worker's release store after each block.
  const std::uint64_t word = watermarks->word[chunk].load(std::memory_order_acquire);
  const std::size_t blocks = bits_for(word, generation);
  return std::min(blocks << chunks.block_log2, bytes);
}

bool Tenancy::range_visible(const Chunks& chunks, std::size_t from, std::size_t to,
                            std::uint32_t* missing) const noexcept {
  *missing = 0;
  if (from >= to) return true;
  const std::uint64_t word = claims->done.load(std::memory_order_acquire);
  const std::uint32_t bits = bits_for(word, generation);
  // A failed chunk is not visible, whatever its bit says: the caller then waits for the end, which
  // reports the failure.
  const std::uint32_t done = (bits & failed_bit) != 0 ? 0 : bits;
  const unsigned last = chunks.holding(to - 1);
  for (unsigned chunk = chunks.holding(from); chunk <= last; ++chunk) {
    const std::size_t need = std::min(to, chunks.end(chunk)) - chunks.begin(chunk);
    if (visible_in_chunk(chunks, chunk, done) < need) *missing |= std::uint32_t{1} << chunk;
  }
  return *missing == 0;
}

std::size_t Tenancy::visible_prefix(const Chunks& chunks) const noexcept {
  const std::uint32_t bits = bits_for(claims->done.load(std::memory_order_acquire), generation);
  const std::uint32_t done = (bits & failed_bit) != 0 ? 0 : bits;
  std::size_t prefix = 0;
  for (unsigned chunk = 0; chunk < chunks.count(); ++chunk) {
    const std::size_t visible = visible_in_chunk(chunks, chunk, done);
    prefix += visible;
    if (visible < chunks.end(chunk) - chunks.begin(chunk)) break;
  }
  return prefix;
}

void Tenancy::sleep(std::uint64_t timeout_ns) const noexcept {
  // Sequentially consistent, as is the load of the state: the node's service, which no barrier of
  // this process reaches, stores the state and then looks for sleepers in the same manner.
  claims->sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint64_t bounded =
      asymmetric_barrier() ? timeout_ns : std::min<std::uint64_t>(timeout_ns, 1'000'000);
  const std::uint64_t word = state->word.load(std::memory_order_seq_cst);
  if (State::seq(word) < seq) {
    os::futex_wait_shared(reinterpret_cast<const std::atomic<std::uint32_t>*>(&state->word),
                          static_cast<std::uint32_t>(word), bounded);
  }
  count_out(claims->sleepers);
}

}  // namespace haul
