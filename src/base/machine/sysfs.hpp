// Reading the kernel's small text files: numbers and lists of CPUs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/machine/topology.hpp"

namespace haul {

// A set of CPUs below max_cpus.
struct CpuSet {
  static constexpr unsigned word_bits = 64;
  std::uint64_t words[max_cpus / word_bits] = {};

  void add(unsigned cpu) noexcept {
    words[cpu / word_bits] |= std::uint64_t{1} << (cpu % word_bits);
  }
  bool has(unsigned cpu) const noexcept {
    return cpu < max_cpus && (words[cpu / word_bits] >> (cpu % word_bits) & 1) != 0;
  }
  unsigned count() const noexcept {
    unsigned total = 0;
    for (const std::uint64_t word : words)
      total += static_cast<unsigned>(__builtin_popcountll(word));
    return total;
  }
  // max_cpus if there is none.
  unsigned first() const noexcept {
    unsigned cpu = 0;
    while (cpu < max_cpus && !has(cpu)) ++cpu;
    return cpu;
  }
};

// Files below one root.
class FileTree {
 public:
  explicit FileTree(const char* root) noexcept : root_(root) {}

  // Reads the file's text, without its last newline; false if it cannot be read.
  [[gnu::format(printf, 4, 5)]] bool read(char* text, std::size_t size, const char* format,
                                          ...) const noexcept;

 private:
  const char* root_;
};

// A whole decimal number, nothing else; false otherwise.
bool parse_number(const char* text, unsigned long& value) noexcept;

// "0-3,8,10-11". False, with `set` empty, if it is anything else or names no CPU below max_cpus.
bool parse_cpu_list(const char* text, CpuSet& set) noexcept;

}  // namespace haul
