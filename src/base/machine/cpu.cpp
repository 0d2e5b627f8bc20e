// Reads cpuid and xgetbv once and keeps the answer.
#include "base/machine/cpu.hpp"

#include <cpuid.h>

#include <atomic>

namespace haul {
namespace {

struct Leaf {
  std::uint32_t eax, ebx, ecx, edx;
};

Leaf cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) noexcept {
  Leaf out;
  __cpuid_count(leaf, subleaf, out.eax, out.ebx, out.ecx, out.edx);
  return out;
}

constexpr bool bit(std::uint32_t word, unsigned index) noexcept {
  return (word >> index) & 1u;
}

// In assembly, since _xgetbv() needs the whole file compiled for XSAVE.
std::uint64_t xgetbv0() noexcept {
  std::uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

void put(char* out, std::uint32_t word) noexcept {
  for (unsigned i = 0; i < 4; ++i) out[i] = static_cast<char>((word >> (8 * i)) & 0xffu);
}

void read_brand(char (&out)[49]) noexcept {
  out[0] = '\0';
  if (cpuid(0x80000000u).eax < 0x80000004u) return;
  char raw[48];
  for (unsigned i = 0; i < 3; ++i) {
    const Leaf part = cpuid(0x80000002u + i);
    put(raw + 16 * i, part.eax);
    put(raw + 16 * i + 4, part.ebx);
    put(raw + 16 * i + 8, part.ecx);
    put(raw + 16 * i + 12, part.edx);
  }
  unsigned from = 0;
  while (from < sizeof raw && raw[from] == ' ') ++from;
  unsigned n = 0;
  for (; from < sizeof raw && raw[from] != '\0'; ++n, ++from) out[n] = raw[from];
  while (n > 0 && out[n - 1] == ' ') --n;
  out[n] = '\0';
}

// Leaf 4 (Intel) and leaf 8000001Dh (AMD) describe caches in the same format.
std::size_t largest_cache_bytes(std::uint32_t leaf) noexcept {
  std::size_t largest = 0;
  for (std::uint32_t index = 0; index < 8; ++index) {
    const Leaf cache = cpuid(leaf, index);
    const std::uint32_t type = cache.eax & 0x1fu;
    if (type == 0) break;
    if (type == 2) continue;  // instructions only
    const std::size_t ways = (cache.ebx >> 22) + 1;
    const std::size_t partitions = ((cache.ebx >> 12) & 0x3ffu) + 1;
    const std::size_t line_bytes = (cache.ebx & 0xfffu) + 1;
    const std::size_t bytes = ways * partitions * line_bytes * (std::size_t{cache.ecx} + 1);
    if (bytes > largest) largest = bytes;
  }
  return largest;
}

// out is all zeros.
void read_features(CpuFeatures& out) noexcept {
  const Leaf zero = cpuid(0);
  put(out.vendor, zero.ebx);
  put(out.vendor + 4, zero.edx);
  put(out.vendor + 8, zero.ecx);

  const Leaf one = cpuid(1);
  out.family = (one.eax >> 8) & 0xfu;
  if (out.family == 0xfu) out.family += (one.eax >> 20) & 0xffu;
  const bool osxsave = bit(one.ecx, 27);
  const std::uint64_t xcr0 = osxsave ? xgetbv0() : 0;
  const bool ymm_saved = (xcr0 & 0x6u) == 0x6u;
  const bool zmm_saved = (xcr0 & 0xe6u) == 0xe6u;

  if (zero.eax >= 7) {
    const Leaf seven = cpuid(7);
    out.avx2 = ymm_saved && bit(one.ecx, 28) && bit(seven.ebx, 5);
    out.avx512 =
        zmm_saved && out.avx2 && bit(seven.ebx, 16) && bit(seven.ebx, 30) && bit(seven.ebx, 31);
    out.erms = bit(seven.ebx, 9);
    out.fsrm = bit(seven.edx, 4);
    out.clflushopt = bit(seven.ebx, 23);
    out.clwb = bit(seven.ebx, 24);
    out.movdir64b = bit(seven.ecx, 28);
    out.protection_keys = bit(seven.ecx, 4);  // OSPKE
  }
  const bool amd = zero.ebx == 0x68747541u;  // "Auth"
  out.fast_rep_movsb = out.erms && (!amd || out.family >= 0x1au);

  // AMD gates its leaf by TOPOEXT; where it is missing both leaves read as "no cache".
  if (cpuid(0x80000000u).eax >= 0x8000001du && bit(cpuid(0x80000001u).ecx, 22)) {
    out.llc_bytes = largest_cache_bytes(0x8000001du);
  }
  if (out.llc_bytes == 0 && zero.eax >= 4) out.llc_bytes = largest_cache_bytes(4);
  read_brand(out.brand);
}

}  // namespace

const CpuFeatures& cpu_features() noexcept {
  // Each thread that comes before the first answer fills in a slot of its own; the first to publish
  // wins. A static local would do, but its guard makes latecomers wait, and a child forked in the
  // middle would wait for ever.
  static constexpr unsigned slot_count = 8;
  static constinit CpuFeatures slots[slot_count]{};
  static constinit std::atomic<unsigned> taken{0};
  static constinit std::atomic<const CpuFeatures*> published{nullptr};

  // Acquire, with the release below: the slot's contents.
  const CpuFeatures* found = published.load(std::memory_order_acquire);
  if (found != nullptr) [[likely]]
    return *found;
  const unsigned slot = taken.fetch_add(1, std::memory_order_relaxed);
  if (slot < slot_count) {
    read_features(slots[slot]);
    if (published.compare_exchange_strong(found, &slots[slot], std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      return slots[slot];
    }
    return *found;
  }
  // A ninth thread at the same instant: one of the eight others is about to publish.
  while ((found = published.load(std::memory_order_acquire)) == nullptr) cpu_relax();
  return *found;
}

}  // namespace haul
