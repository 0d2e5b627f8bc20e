// Filling and checking at the speed of the memory: word i is seed + i * step.
#include "bench/messages/mpi/content.h"

#include <string.h>

static const uint64_t step = 0x9e3779b97f4a7c15;

uint64_t seed_of(int rank, int piece, uint64_t stamp) {
  uint64_t x = stamp * step + ((uint64_t)rank << 32) + (uint64_t)piece + 1;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

void fill(unsigned char* at, size_t bytes, uint64_t seed) {
  const size_t words = bytes / 8;
  for (size_t i = 0; i < words; i++) {
    const uint64_t word = seed + i * step;
    memcpy(at + 8 * i, &word, 8);
  }
  const uint64_t last = seed + words * step;
  memcpy(at + 8 * words, &last, bytes % 8);
}

void fill_evenly(unsigned char* at, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; i += 8) memcpy(at + i, &seed, bytes - i < 8 ? bytes - i : 8);
}

size_t first_wrong(const unsigned char* at, size_t bytes, uint64_t seed) {
  const size_t words = bytes / 8;
  uint64_t differences = 0;
  for (size_t i = 0; i < words; i++) {
    uint64_t word;
    memcpy(&word, at + 8 * i, 8);
    differences |= word ^ (seed + i * step);
  }
  const uint64_t last = seed + words * step;
  if (differences == 0 && memcmp(at + 8 * words, &last, bytes % 8) == 0) return bytes;
  for (size_t i = 0;; i++) {
    const uint64_t word = seed + i / 8 * step;
    if (at[i] != (unsigned char)(word >> 8 * (i % 8))) return i;
  }
}

static size_t end_bytes(size_t bytes) {
  return bytes < 8 ? bytes : 8;
}

void fill_ends(unsigned char* at, size_t bytes, uint64_t seed) {
  const size_t end = end_bytes(bytes);
  fill(at, end, seed);
  if (bytes >= 16) fill(at + bytes - end, end, seed + 1);
}

size_t first_wrong_end(const unsigned char* at, size_t bytes, uint64_t seed) {
  const size_t end = end_bytes(bytes);
  size_t wrong = first_wrong(at, end, seed);
  if (wrong < end) return wrong;
  if (bytes < 16) return bytes;
  wrong = first_wrong(at + bytes - end, end, seed + 1);
  return bytes - end + wrong;
}
