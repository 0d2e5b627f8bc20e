// SPDX-License-Identifier: GPL-2.0-or-later
#include "statics.h"

#include <stdlib.h>
#include <string.h>

// Open addressing over pointers: translated code keeps pointers to the instructions, so they stay
// put.
static struct static_instruction** table;
static uint64_t table_size, table_used;

static uint64_t mix(uint64_t value, uint64_t next) {
  value = (value ^ next) * 0x9e3779b97f4a7c15u;
  return value ^ value >> 29;
}

static uint64_t hash_of(const struct static_instruction* one) {
  uint64_t code[2] = {0, 0};
  memcpy(code, one->bytes, one->size);
  return mix(mix(mix(mix(one->size, one->address), one->physical), code[0]), code[1]);
}

static int same(const struct static_instruction* a, const struct static_instruction* b) {
  return a->address == b->address && a->physical == b->physical && a->size == b->size &&
         memcmp(a->bytes, b->bytes, a->size) == 0;
}

static struct static_instruction** slot_of(const struct static_instruction* one) {
  uint64_t at = hash_of(one);
  while (table[at &= table_size - 1] != NULL && !same(table[at], one)) ++at;
  return &table[at];
}

static int grow(void) {
  struct static_instruction** old = table;
  const uint64_t old_size = table_size;
  const uint64_t size = old_size != 0 ? 2 * old_size : 1 << 16;
  struct static_instruction** fresh = calloc(size, sizeof *fresh);
  if (fresh == NULL) return 0;
  table = fresh;
  table_size = size;
  for (uint64_t i = 0; i < old_size; ++i)
    if (old[i] != NULL) *slot_of(old[i]) = old[i];
  free(old);
  return 1;
}

struct static_instruction* static_of(uint64_t address, uint64_t physical, const void* bytes,
                                     uint64_t size) {
  struct static_instruction wanted = {.address = address, .physical = physical, .id = NO_ID};
  wanted.size = (uint8_t)(size < sizeof wanted.bytes ? size : sizeof wanted.bytes);
  memcpy(wanted.bytes, bytes, wanted.size);
  if (2 * table_used >= table_size && !grow()) return NULL;
  struct static_instruction** slot = slot_of(&wanted);
  if (*slot == NULL) {
    *slot = malloc(sizeof wanted);
    if (*slot == NULL) return NULL;
    **slot = wanted;
    ++table_used;
  }
  return *slot;
}
