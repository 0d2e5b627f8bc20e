// SPDX-License-Identifier: GPL-2.0-or-later
// The guest's memory, as QEMU maps it: one block from physical address 0 (the runner keeps it below
// the hole that PCI needs), made by -object memory-backend-memfd.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NOT_MEMORY UINT64_MAX

extern uint8_t* guest_memory;  // host address of physical address 0
extern uint64_t guest_memory_bytes;

// Finds QEMU's mapping; false when there is none. To be called once the machine is built.
bool guest_memory_find(void);

// Physical address of a byte at a host address; NOT_MEMORY when it lies elsewhere (a ROM, a
// device).
static inline uint64_t guest_physical(const void* host) {
  const uint64_t offset = (uint64_t)((const uint8_t*)host - guest_memory);
  return host != 0 && offset < guest_memory_bytes ? offset : NOT_MEMORY;
}
// Host address of `bytes` at a physical address; null when they are not all memory.
static inline const void* guest_bytes(uint64_t physical, uint64_t bytes) {
  return physical < guest_memory_bytes && bytes <= guest_memory_bytes - physical
             ? guest_memory + physical
             : 0;
}
