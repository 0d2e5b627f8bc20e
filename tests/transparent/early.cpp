// A library whose IFUNC resolver and constructor copy, as a program's other libraries may do before
// a preloaded one has been relocated or started.
#include "transparent/early.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

constexpr std::size_t bytes = 3 * 1024 * 1024;
unsigned char from[bytes], to[bytes];
int faults = 0;

unsigned char expected(std::size_t at) {
  return static_cast<unsigned char>(at * 0x9E3779B97F4A7C15u >> 56);
}

void check(std::size_t begin, std::size_t length, std::ptrdiff_t distance) {
  for (std::size_t i = begin; i < begin + length; ++i) {
    if (to[i] != expected(static_cast<std::size_t>(static_cast<std::ptrdiff_t>(i) - distance))) {
      ++faults;
      return;
    }
  }
}

[[gnu::constructor]] void copy_early() {
  for (std::size_t i = 0; i < bytes; ++i) from[i] = expected(i);
  if (std::memcpy(to, from, bytes) != to) ++faults;
  check(0, bytes, 0);
  if (std::memmove(to + 4096, to, bytes - 4096) != to + 4096) ++faults;
  check(4096, bytes - 4096, 4096);
  if (std::memcpy(to, from, bytes) != to) ++faults;
  if (std::memmove(to, to + 4096, bytes - 4096) != to) ++faults;
  check(0, bytes - 4096, -4096);
  if (std::memset(to, 7, bytes) != to) ++faults;
  for (std::size_t i = 0; i < bytes; ++i) faults += to[i] != 7;
}

int right() {
  return 42;
}
int wrong() {
  return 13;
}

}  // namespace

extern "C" {

using Answer = int();

// (No stack protector: its value does not exist yet.)
[[gnu::no_stack_protector]] Answer* early_resolve() {
  char source[64], middle[64], copy[64];
  for (int i = 0; i < 64; ++i) source[i] = static_cast<char>(i + 1);
  std::size_t length = sizeof copy;
  asm volatile("" : "+r"(length));  // unknown to the compiler, so that it calls
  std::memset(middle, 0, length);
  std::memcpy(middle, source, length);
  std::memmove(copy, middle, length);
  std::memmove(copy + 1, copy, length - 1);
  for (int i = 1; i < 64; ++i)
    if (copy[i] != static_cast<char>(i)) return wrong;
  return right;
}

int early_answer() __attribute__((ifunc("early_resolve")));

int early_faults() {
  return faults;
}
}
