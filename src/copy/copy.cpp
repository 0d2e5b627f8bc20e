// Chooses, by size, overlap and affinity, which inner loop moves which stretch.
#include "copy/copy.hpp"

#include <emmintrin.h>

#include <atomic>

#include "base/machine/cpu.hpp"
#include "base/sanitizer.hpp"
#include "copy/cache_lines.hpp"
#include "copy/checked.hpp"
#include "copy/kernels.hpp"

namespace haul::copy {
namespace {

// From here on rep movsb, where it is fast. It does not fetch the destination's lines before it
// overwrites them: as fast as vectors in the L1, a third faster from the L2, a tenth from memory.
constexpr std::size_t string_move_from_bytes = 4 * 1024;
// From here on rep stosq, for the same reason (cold 70 GB/s, vectors 40).
constexpr std::size_t string_fill_from_bytes = 8 * 1024;
// Below this an affinity costs more than it saves.
constexpr std::size_t affinity_from_bytes = 256;
constexpr std::size_t neutral_from_bytes = 64 * 1024;
// How far the flushes follow behind the read: few enough lines that they overlap with the next
// loads.
constexpr std::size_t flush_batch_bytes = 512;
// One timed read decides for this much; it costs as much as moving 3 KiB.
constexpr std::size_t probe_group_bytes = 32 * 1024;

constinit std::atomic<const Kernels*> chosen_kernels{nullptr};

constexpr bool has_level(const CpuFeatures& cpu, Level level) noexcept {
  return level == Level::portable || (level == Level::avx2 && cpu.avx2) ||
         (level == Level::avx512 && cpu.avx512);
}

const Kernels& kernels_of(Level level) noexcept {
  return level == Level::avx512 ? avx512_kernels
         : level == Level::avx2 ? avx2_kernels
                                : portable_kernels;
}

[[gnu::noinline, gnu::cold]] const Kernels& choose_kernels() noexcept {
  const Kernels& kernels = kernels_of(best_level());
  chosen_kernels.store(&kernels, std::memory_order_relaxed);
  return kernels;
}

// Relaxed: the tables are constants, and every thread would choose the same one.
const Kernels& best_kernels() noexcept {
  const Kernels* kernels = chosen_kernels.load(std::memory_order_relaxed);
  if (kernels != nullptr) [[likely]]
    return *kernels;
  return choose_kernels();
}

std::size_t bytes_to_line(const std::byte* address) noexcept {
  return (line_bytes - (reinterpret_cast<std::uintptr_t>(address) & (line_bytes - 1))) &
         (line_bytes - 1);
}

bool overlap(const std::byte* a, const std::byte* b, std::size_t len) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(a);
  const auto second = reinterpret_cast<std::uintptr_t>(b);
  return first - second < len || second - first < len;
}

// A destination that the last-level cache cannot hold: whether kept there or not, it is gone when
// it is needed.
bool outgrows_cache(std::size_t len, std::size_t whole_bytes) noexcept {
  const std::size_t llc_bytes = cpu_features().llc_bytes;
  return llc_bytes != 0 && (len > llc_bytes || whole_bytes > llc_bytes);
}

void move_cached(const Kernels& kernels, std::byte* dst, const std::byte* src,
                 std::size_t len) noexcept {
  if (len <= 64) {
    move_up_to_64(dst, src, len);
  } else {
    kernels.move(dst, src, len);
  }
}

// No overlap. Moves whole lines of the destination, so that the CPU need not fetch any of them;
// some CPUs recognise that only by its alignment.
void move_string(std::byte* dst, const std::byte* src, std::size_t len) noexcept {
  const std::size_t head = bytes_to_line(dst);
  move_up_to_64(dst, src, head);
  dst += head;
  src += head;
  const std::size_t tail = (len - head) & (line_bytes - 1);
  std::size_t count = len - head - tail;
  asm volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(count) : : "memory");
  move_up_to_64(dst, src, tail);
}

// No overlap. Unfenced. The partial lines at the ends are stored as usual.
void move_streamed(const Kernels& kernels, std::byte* dst, const std::byte* src,
                   std::size_t len) noexcept {
  const std::size_t head = bytes_to_line(dst);
  if (len < head + line_bytes) return move_cached(kernels, dst, src, len);
  const std::size_t tail = (len - head) & (line_bytes - 1);
  move_up_to_64(dst, src, head);
  kernels.stream_lines(dst + head, src + head, len - head - tail);
  move_up_to_64(dst + len - tail, src + len - tail, tail);
}

// No overlap; part of something large. The destination is written through the cache.
void move_piece(const Kernels& kernels, std::byte* dst, const std::byte* src,
                std::size_t len) noexcept {
  if (len >= string_move_from_bytes && cpu_features().fast_rep_movsb) {
    move_string(dst, src, len);
  } else {
    move_cached(kernels, dst, src, len);
  }
}

// Both sides cacheable, len > 64; it or the whole at least string_move_from_bytes. Out of line, to
// keep small copies short.
[[gnu::noinline]] void move_large(const Kernels& kernels, std::byte* dst, const std::byte* src,
                                  std::size_t len, std::size_t whole_bytes) noexcept {
  if (overlap(dst, src, len)) {
    kernels.move(dst, src, len);
  } else if (len >= string_move_from_bytes && outgrows_cache(len, whole_bytes)) {
    move_streamed(kernels, dst, src, len);
    _mm_sfence();
  } else {
    move_piece(kernels, dst, src, len);
  }
}

// Both sides cacheable, len > 64.
void move_cacheable(const Kernels& kernels, std::byte* dst, const std::byte* src, std::size_t len,
                    std::size_t whole_bytes) noexcept {
  if (len < string_move_from_bytes && whole_bytes < string_move_from_bytes) [[likely]] {
    return kernels.move(dst, src, len);
  }
  move_large(kernels, dst, src, len, whole_bytes);
}

// Finds out, for one stretch after the other, whether a neutral side is in the cache.
class Prober {
 public:
  Prober() noexcept
      : threshold_cycles_(residency_threshold_cycles()), state_(__builtin_ia32_rdtsc() | 1u) {}

  // Reads at a random place: a fixed stride would meet only what the prefetcher has brought in on
  // the way through the previous stretch. That lies at the front, so the first page is left out.
  bool resident(const std::byte* stretch, std::size_t len) noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    const std::size_t skip = len > 8192 ? 4096 : 0;
    return is_resident(stretch + skip + state_ % (len - skip), threshold_cycles_);
  }

 private:
  std::uint32_t threshold_cycles_;
  std::uint64_t state_;
};

// Flushes the lines that end between from and to, but none that begins before source does.
void flush_behind(const std::byte* source, const std::byte* from, const std::byte* to) noexcept {
  const std::byte* first = from - (reinterpret_cast<std::uintptr_t>(from) & (line_bytes - 1));
  if (first < source) first += line_bytes;
  flush_lines(first, to - (reinterpret_cast<std::uintptr_t>(to) & (line_bytes - 1)));
}

// The length of the next stretch: at most limit, and such that the one after begins on a line.
std::size_t stretch_bytes(const std::byte* dst, std::size_t left, std::size_t limit) noexcept {
  if (left <= limit) return left;
  return limit - (reinterpret_cast<std::uintptr_t>(dst) & (line_bytes - 1));
}

// What is to happen to the caches in one stretch, once `neutral` has been decided.
struct Treatment {
  bool stream_dst;
  bool flush_src;
};

// No overlap. source is where the whole source begins. Unfenced.
void move_stretch(const Kernels& kernels, std::byte* dst, const std::byte* src, std::size_t len,
                  Treatment treatment, const std::byte* source) noexcept {
  const std::size_t batch_bytes = treatment.flush_src ? flush_batch_bytes : len;
  while (len > 0) {
    const std::size_t batch = stretch_bytes(dst, len, batch_bytes);
    if (treatment.stream_dst) {
      move_streamed(kernels, dst, src, batch);
    } else {
      move_piece(kernels, dst, src, batch);
    }
    if (treatment.flush_src) flush_behind(source, src, src + batch);
    dst += batch;
    src += batch;
    len -= batch;
  }
}

[[gnu::noinline]] void move_with_affinity(const Kernels& kernels, std::byte* dst,
                                          const std::byte* src, std::size_t len,
                                          Affinity dst_affinity, Affinity src_affinity,
                                          std::size_t whole_bytes) noexcept {
  if (len < affinity_from_bytes || overlap(dst, src, len)) return kernels.move(dst, src, len);
  const bool probe = len >= neutral_from_bytes || whole_bytes >= neutral_from_bytes;
  const bool probe_dst = probe && dst_affinity == Affinity::neutral;
  const bool probe_src = probe && src_affinity == Affinity::neutral;
  Treatment treatment{dst_affinity == Affinity::non_cacheable,
                      src_affinity == Affinity::non_cacheable};
  if (!probe_dst && !probe_src && !treatment.stream_dst && !treatment.flush_src) {
    return move_cacheable(kernels, dst, src, len, whole_bytes);
  }
  if (outgrows_cache(len, whole_bytes)) treatment.stream_dst = true;
  if (!probe_dst && !probe_src) {
    move_stretch(kernels, dst, src, len, treatment, src);
  } else {
    Prober prober;
    const std::byte* const source = src;
    while (len > 0) {
      const std::size_t stretch = stretch_bytes(dst, len, probe_group_bytes);
      // Both probes before the copy, which would itself change the answers.
      if (probe_dst) treatment.stream_dst = !prober.resident(dst, stretch);
      if (probe_src) treatment.flush_src = !prober.resident(src, stretch);
      move_stretch(kernels, dst, src, stretch, treatment, source);
      dst += stretch;
      src += stretch;
      len -= stretch;
    }
  }
  _mm_sfence();
}

void move_at(const Kernels& kernels, std::byte* dst, const std::byte* src, std::size_t len,
             Affinity dst_affinity, Affinity src_affinity, std::size_t whole_bytes) noexcept {
  if constexpr (accesses_are_checked) return checked_move(dst, src, len);
  if (len <= 64) return move_up_to_64(dst, src, len);
  if (dst_affinity == Affinity::cacheable && src_affinity == Affinity::cacheable) [[likely]] {
    return move_cacheable(kernels, dst, src, len, whole_bytes);
  }
  move_with_affinity(kernels, dst, src, len, dst_affinity, src_affinity, whole_bytes);
}

void move_in_order_by(const Kernels& kernels, std::byte* dst, const std::byte* src,
                      std::size_t len) noexcept {
  if constexpr (accesses_are_checked) return checked_move(dst, src, len);
  if (len <= 64) return move_up_to_64(dst, src, len);
  kernels.move_in_order(dst, src, len);
}

// ---- fill ----

// dst line-aligned, len a multiple of a line.
void fill_string(std::byte* dst, std::size_t len, std::uint64_t word) noexcept {
  std::size_t count = len / 8;
  asm volatile("rep stosq" : "+D"(dst), "+c"(count) : "a"(word) : "memory");
}

// Fills head and tail as usual, and whole lines as asked. Unfenced.
void fill_stretch(const Kernels& kernels, std::byte* dst, std::size_t len, std::uint64_t word,
                  bool stream) noexcept {
  if (len <= 64) return fill_up_to_64(dst, len, word);
  const std::size_t head = bytes_to_line(dst);
  const std::size_t tail = (len - head) & (line_bytes - 1);
  const std::size_t lines = len - head - tail;
  fill_up_to_64(dst, head, word);
  const std::uint64_t lines_word = pattern_at(word, head);
  if (stream) {
    kernels.stream_fill_lines(dst + head, lines, lines_word);
  } else if (lines >= string_fill_from_bytes && cpu_features().erms) {
    fill_string(dst + head, lines, lines_word);
  } else {
    kernels.fill_lines(dst + head, lines, lines_word);
  }
  fill_up_to_64(dst + len - tail, tail, pattern_at(word, len - tail));
}

void fill_at(const Kernels& kernels, std::byte* dst, std::size_t len, std::uint64_t word,
             Affinity affinity) noexcept {
  if constexpr (accesses_are_checked) return checked_fill(dst, len, word);
  if (len < affinity_from_bytes || affinity == Affinity::cacheable) {
    return fill_stretch(kernels, dst, len, word, false);
  }
  if (affinity == Affinity::non_cacheable) {
    fill_stretch(kernels, dst, len, word, true);
  } else if (len < neutral_from_bytes) {
    fill_stretch(kernels, dst, len, word, false);
  } else {
    Prober prober;
    while (len > 0) {
      const std::size_t stretch = stretch_bytes(dst, len, probe_group_bytes);
      fill_stretch(kernels, dst, stretch, word, !prober.resident(dst, stretch));
      word = pattern_at(word, stretch);
      dst += stretch;
      len -= stretch;
    }
  }
  _mm_sfence();
}

}  // namespace

Level best_level() noexcept {
  const CpuFeatures& cpu = cpu_features();
  return has_level(cpu, Level::avx512) ? Level::avx512
         : has_level(cpu, Level::avx2) ? Level::avx2
                                       : Level::portable;
}

void move_in_order(void* dst, const void* src, std::size_t len) noexcept {
  move_in_order_by(best_kernels(), static_cast<std::byte*>(dst), static_cast<const std::byte*>(src),
                   len);
}

bool move_in_order_at(Level level, void* dst, const void* src, std::size_t len) noexcept {
  if (!has_level(cpu_features(), level)) return false;
  move_in_order_by(kernels_of(level), static_cast<std::byte*>(dst),
                   static_cast<const std::byte*>(src), len);
  return true;
}

void move_bytes(void* dst, const void* src, std::size_t len, Affinity dst_affinity,
                Affinity src_affinity, std::size_t whole_bytes) noexcept {
  move_at(best_kernels(), static_cast<std::byte*>(dst), static_cast<const std::byte*>(src), len,
          dst_affinity, src_affinity, whole_bytes);
}

bool move_bytes_at(Level level, void* dst, const void* src, std::size_t len, Affinity dst_affinity,
                   Affinity src_affinity, std::size_t whole_bytes) noexcept {
  if (!has_level(cpu_features(), level)) return false;
  move_at(kernels_of(level), static_cast<std::byte*>(dst), static_cast<const std::byte*>(src), len,
          dst_affinity, src_affinity, whole_bytes);
  return true;
}

void fill_bytes(void* dst, std::size_t len, std::uint64_t pattern, unsigned pattern_bytes,
                Affinity dst_affinity) noexcept {
  fill_at(best_kernels(), static_cast<std::byte*>(dst), len, widen_pattern(pattern, pattern_bytes),
          dst_affinity);
}

bool fill_bytes_at(Level level, void* dst, std::size_t len, std::uint64_t pattern,
                   unsigned pattern_bytes, Affinity dst_affinity) noexcept {
  if (!has_level(cpu_features(), level)) return false;
  fill_at(kernels_of(level), static_cast<std::byte*>(dst), len,
          widen_pattern(pattern, pattern_bytes), dst_affinity);
  return true;
}

std::uint64_t widen_pattern(std::uint64_t pattern, unsigned pattern_bytes) noexcept {
  switch (pattern_bytes) {
    case 1: return (pattern & 0xffu) * 0x0101010101010101u;
    case 2: return (pattern & 0xffffu) * 0x0001000100010001u;
    case 4: return (pattern & 0xffffffffu) * 0x0000000100000001u;
    default: return pattern;
  }
}

}  // namespace haul::copy
