// The memory that messages leave from and arrive in, by how a program treats it.
#pragma once

#include <stddef.h>

enum Kind {
  REUSED,     // the same two areas each time, touched by nobody else
  REWRITTEN,  // the same two areas: written before each send, read after each receive
  FRESH,      // two areas newly mapped for each exchange, unmapped after it
  OFF_CACHE,  // the next of many areas that together exceed the last-level cache
  ALLOC_MEM,  // as reused, from MPI_Alloc_mem()
  KINDS
};
extern const char* const kind_names[KINDS];

// What one rank sends and receives in one exchange.
struct Areas {
  unsigned char *out, *in;
};

struct Buffers {
  enum Kind kind;
  size_t out_bytes, in_bytes;  // of one area
  size_t out_stride, in_stride, slots, next;
  unsigned char *out, *in;
};

// cache_bytes: the last-level cache that all ranks share. Ends the program if there is no memory.
struct Buffers make_buffers(enum Kind kind, size_t out_bytes, size_t in_bytes, size_t cache_bytes,
                            int ranks);
void free_buffers(struct Buffers* buffers);

// The areas of the next exchange; each acquire is followed by one release.
struct Areas acquire(struct Buffers* buffers);
void release(struct Buffers* buffers, struct Areas areas);
// The areas that acquire() will return after `ahead` more acquires. Not for FRESH.
struct Areas peek(const struct Buffers* buffers, size_t ahead);
