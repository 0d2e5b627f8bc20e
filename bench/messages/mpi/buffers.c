// Pools of allocated memory, all touched before anything is timed.
#define _GNU_SOURCE
#include "bench/messages/mpi/buffers.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/messages/mpi/common.h"

const char* const kind_names[KINDS] = {"reused", "rewritten", "fresh", "off-cache", "alloc-mem"};

static size_t at_least_one(size_t bytes) {
  return bytes == 0 ? 1 : bytes;
}

static unsigned char* map(size_t bytes) {
  void* at = mmap(NULL, at_least_one(bytes), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) fail("no memory for %zu bytes of messages; choose smaller sizes", bytes);
  return at;
}

// As programs do: by malloc, from a page on.
static unsigned char* make_pool(size_t bytes) {
  const size_t page = 4096;
  void* at = NULL;
  if (posix_memalign(&at, page, at_least_one(bytes)) != 0)
    fail("no memory for %zu bytes of messages; choose smaller sizes", bytes);
  return at;
}

static void unmap(unsigned char* at, size_t bytes) {
  munmap(at, at_least_one(bytes));
}

struct Buffers make_buffers(enum Kind kind, size_t out_bytes, size_t in_bytes, size_t cache_bytes,
                            int ranks) {
  const size_t line = 64;
  struct Buffers made = {.kind = kind, .out_bytes = out_bytes, .in_bytes = in_bytes, .slots = 1};
  made.out_stride = (out_bytes + line - 1) / line * line;
  made.in_stride = (in_bytes + line - 1) / line * line;
  if (kind == OFF_CACHE) {
    // All ranks together use twice the cache before they use an area again.
    const size_t share = 2 * cache_bytes / (size_t)ranks;
    made.slots = share / at_least_one(made.out_stride + made.in_stride) + 2;
  }
  if (kind == FRESH) return made;
  if (kind == ALLOC_MEM) {
    if (MPI_Alloc_mem((MPI_Aint)at_least_one(made.out_stride), MPI_INFO_NULL, &made.out) !=
            MPI_SUCCESS ||
        MPI_Alloc_mem((MPI_Aint)at_least_one(made.in_stride), MPI_INFO_NULL, &made.in) !=
            MPI_SUCCESS)
      fail("MPI_Alloc_mem() has no %zu bytes; choose smaller sizes", out_bytes + in_bytes);
  } else {
    made.out = make_pool(made.slots * made.out_stride);
    made.in = make_pool(made.slots * made.in_stride);
  }
  // A page that has only been read may be the shared zero page.
  memset(made.out, 1, made.slots * made.out_stride);
  memset(made.in, 1, made.slots * made.in_stride);
  return made;
}

void free_buffers(struct Buffers* buffers) {
  if (buffers->kind == FRESH) return;
  if (buffers->kind == ALLOC_MEM) {
    MPI_Free_mem(buffers->out);
    MPI_Free_mem(buffers->in);
    return;
  }
  free(buffers->out);
  free(buffers->in);
}

struct Areas peek(const struct Buffers* buffers, size_t ahead) {
  const size_t slot = (buffers->next + ahead) % buffers->slots;
  return (struct Areas){buffers->out + slot * buffers->out_stride,
                        buffers->in + slot * buffers->in_stride};
}

struct Areas acquire(struct Buffers* buffers) {
  if (buffers->kind == FRESH)
    return (struct Areas){map(buffers->out_bytes), map(buffers->in_bytes)};
  const struct Areas areas = peek(buffers, 0);
  buffers->next = (buffers->next + 1) % buffers->slots;
  return areas;
}

void release(struct Buffers* buffers, struct Areas areas) {
  if (buffers->kind != FRESH) return;
  unmap(areas.out, buffers->out_bytes);
  unmap(areas.in, buffers->in_bytes);
}
