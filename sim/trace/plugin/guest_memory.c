// SPDX-License-Identifier: GPL-2.0-or-later
#include "guest_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint8_t* guest_memory;
uint64_t guest_memory_bytes;

bool guest_memory_find(void) {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == NULL) return false;
  uint64_t base = 0, end = 0;
  char line[512];
  while (fgets(line, sizeof line, maps) != NULL) {
    uint64_t from, to, offset;
    if (strstr(line, "/memfd:memory-backend-memfd") == NULL) continue;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &from, &to, &offset) != 3) continue;
    if (end == 0) base = from - offset;
    if (from - offset == base && to > end) end = to;  // the kernel may show one mapping in parts
  }
  fclose(maps);
  guest_memory = (uint8_t*)base;
  guest_memory_bytes = end - base;
  return end != 0;
}
