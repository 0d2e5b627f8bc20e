// SPDX-License-Identifier: GPL-2.0-or-later
// Every instruction that was translated, once for each (virtual address, physical address, bytes).
#pragma once

#include <stdint.h>

#define NO_ID UINT32_MAX

struct static_instruction {
  uint64_t address, physical;
  uint32_t id;  // its number in the stream; NO_ID until its first recorded execution
  uint8_t size;
  uint8_t bytes[15];
};

// The one and only for these; lives as long as QEMU. Null when memory has run out.
struct static_instruction* static_of(uint64_t address, uint64_t physical, const void* bytes,
                                     uint64_t size);
