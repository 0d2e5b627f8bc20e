// What this CPU can do. The only home of cpuid and xgetbv.
#pragma once

#include <cstddef>
#include <cstdint>

namespace haul {

struct CpuFeatures {
  // True only where the operating system also saves the registers involved.
  bool avx2;
  bool avx512;  // F, VL and BW
  bool erms;
  bool fsrm;
  bool clflushopt;
  bool clwb;
  bool movdir64b;
  bool protection_keys;  // the operating system has switched them on
  // `rep movsb` pays: ERMS, and not an AMD core before family 1Ah, where a source that lies just
  // ahead of the destination modulo the page size makes it several times slower (glibc bug 30994).
  bool fast_rep_movsb;
  std::uint32_t family;   // with the extended family added, as vendors quote it
  std::size_t llc_bytes;  // the largest data cache that cpuid reports; 0 if it reports none
  char vendor[13];        // "GenuineIntel"; always terminated
  char brand[49];         // leading blanks removed; empty where there is none; always terminated
};

// Reads cpuid once a process: some microseconds, tens in a virtual machine where cpuid traps. Any
// thread, signal handlers included. It never waits for another thread, so a fork or a signal in the
// middle of some thread's first call does no harm. No call into libc.
const CpuFeatures& cpu_features() noexcept;

inline void cpu_relax() noexcept {
  __builtin_ia32_pause();
}

// Which protection keys the calling thread has opened (two bits a key: no access, no writing). Only
// where the CPU has protection keys.
inline std::uint32_t opened_keys() noexcept {
  std::uint32_t keys, zero;
  // rdpkru, which assemblers know only where the file is compiled for it.
  asm volatile(".byte 0x0f, 0x01, 0xee" : "=a"(keys), "=d"(zero) : "c"(0));
  return keys;
}

[[gnu::always_inline]] inline std::uintptr_t stack_pointer() noexcept {
  std::uintptr_t at;
  asm volatile("mov %%rsp, %0" : "=r"(at));
  return at;
}

}  // namespace haul
