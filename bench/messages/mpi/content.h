// What messages hold: words that depend on which rank sent which piece when, so that a byte of
// another message, of an older one, or at another place is noticed.
#pragma once

#include <stddef.h>
#include <stdint.h>

// The seed of one piece: `stamp` tells messages of the same piece apart.
uint64_t seed_of(int rank, int piece, uint64_t stamp);

void fill(unsigned char* at, size_t bytes, uint64_t seed);
// The first wrong byte, or `bytes`.
size_t first_wrong(const unsigned char* at, size_t bytes, uint64_t seed);

// Each word is `seed`. If one rank fills its piece and each other one makes its piece even, the sum
// of all is what the sum of their seeds fills.
void fill_evenly(unsigned char* at, size_t bytes, uint64_t seed);

// fill() and first_wrong() for the first and last word only: cheap, for messages within a timed
// batch.
void fill_ends(unsigned char* at, size_t bytes, uint64_t seed);
size_t first_wrong_end(const unsigned char* at, size_t bytes, uint64_t seed);
