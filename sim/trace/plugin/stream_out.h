// SPDX-License-Identifier: GPL-2.0-or-later
// The records of ../stream.h, buffered, to a pipe. One thread writes: the virtual processor's.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "../stream.h"

enum { stream_capacity = 1 << 20, stream_largest_record = 64 };

struct stream_out {
  int descriptor;
  bool failed;  // a write failed: what follows is dropped
  uint32_t used;
  uint8_t bytes[stream_capacity];
};
extern struct stream_out stream_out;

void stream_open(int descriptor);
void stream_flush(void);
// Writes what is left and closes the pipe. False when anything was lost; errno says why.
bool stream_close(void);

// Room for a record: its tag is written, its fields follow by stream_put.
static inline void stream_begin(uint8_t tag) {
  if (stream_out.used > stream_capacity - stream_largest_record) stream_flush();
  stream_out.bytes[stream_out.used++] = tag;
}
// The host is little-endian, as the stream is (x86; plugin.c refuses to be built elsewhere).
static inline void stream_put(const void* field, uint32_t size) {
  memcpy(stream_out.bytes + stream_out.used, field, size);
  stream_out.used += size;
}
static inline void stream_exec(uint32_t id) {
  stream_begin(BCISIM_EXEC);
  stream_put(&id, 4);
}
static inline void stream_memory(uint64_t address, uint64_t physical, uint16_t bytes,
                                 uint8_t store) {
  stream_begin(BCISIM_MEMORY);
  stream_put(&address, 8);
  stream_put(&physical, 8);
  stream_put(&bytes, 2);
  stream_put(&store, 1);
}
static inline void stream_device(uint64_t physical, uint32_t bytes, uint8_t wrote) {
  stream_begin(BCISIM_DEVICE);
  stream_put(&physical, 8);
  stream_put(&bytes, 4);
  stream_put(&wrote, 1);
}
