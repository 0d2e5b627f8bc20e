// SPDX-License-Identifier: GPL-2.0-or-later
// What virtio devices read and wrote in memory, told from what the driver does with the rings.
//
// QEMU's devices reach guest memory in other threads, where no plugin sees them. But whatever they
// do is described in split virtqueues: when the driver stores avail->idx, what a device may read is
// made known; when it loads used->idx, it learns what a device wrote. So the records come at the
// latest moment at which a device can have written and the earliest at which it can have read.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "guest_memory.h"

// One queue's rings, by physical address. False when there are too many, or one is not in memory.
bool virtqueue_add(const char* name, uint64_t descriptors, uint64_t available, uint64_t used,
                   uint32_t size);
// From here on: what was made known before is not reported.
void virtqueues_start(void);
// The driver referred to a ring's page: after a reference for which virtqueue_watches() holds.
void virtqueues_reference(uint64_t physical, uint32_t bytes, bool store);
// Says each queue's totals to the runner.
void virtqueues_report(void);

enum { page_bits = 12 };
extern uint8_t* virtqueue_pages;  // a bit for each page of memory: holds an index that is watched

static inline bool virtqueue_watches(uint64_t physical) {
  const uint64_t page = physical >> page_bits;
  return virtqueue_pages != 0 && physical < guest_memory_bytes &&
         (virtqueue_pages[page >> 3] >> (page & 7) & 1) != 0;
}
