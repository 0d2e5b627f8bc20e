/* Requests in full: a vector gathers the tiles of a picture, a fence orders, a word tells the end.
 */
#include <haul/haul.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum { width = 4096, height = 2048, tile_width = 1024, tile_height = 512 };

static uint8_t picture[height][width];
static uint8_t tile[tile_height][tile_width];
static uint8_t copy_of_tile[tile_height][tile_width];
static haul_extent rows[tile_height];
static _Atomic uint64_t ready; /* 8-byte aligned by its type */

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, haul_last_error());
  return 1;
}

int main(void) {
  for (int y = 0; y < height; y++) {
    for (int x = 0; x < width; x++)
      picture[y][x] = (uint8_t)(x / tile_width + 4 * (y / tile_height));
  }
  /* The source is one extent a row; the destination is one extent of the same total length. */
  for (int y = 0; y < tile_height; y++) {
    rows[y] =
        (haul_extent){.address = &picture[tile_height + y][2 * tile_width], .length = tile_width};
  }
  haul_request requests[3];
  requests[0] = haul_request_copy(tile, NULL, sizeof tile);
  requests[0].src = (haul_extent){0};
  requests[0].src_vector = rows;
  requests[0].src_count = tile_height;
  /* The picture is not read again soon, so it need not stay in the cache. */
  requests[0].src_affinity = HAUL_NON_CACHEABLE;

  /* Requests are unordered; this one reads what the first one writes, so it needs the fence. */
  requests[1] = haul_request_copy(copy_of_tile, tile, sizeof tile);
  requests[1].flags = HAUL_FENCE;

  /* And this one clears the tile when both are over. The word is set after the data. */
  requests[2] = haul_request_fill(tile, 0, 1, sizeof tile);
  requests[2].flags = HAUL_FENCE;
  requests[2].notify = (uint64_t*)&ready;
  requests[2].notify_value = 1;

  haul_ticket tickets[3];
  int taken = haul_submit(requests, 3, tickets);
  if (taken != 3) return fail("haul_submit");
  printf("submitted %d requests, the first of %d extents\n", taken, tile_height);

  /* Waiting for the last fenced request means that the earlier ones have ended too; whether they
   * ended well is what their own tickets say. */
  for (int i = 2; i >= 0; i--) {
    if (haul_wait(tickets[i]) != 0) return fail("a request");
  }
  printf("the notification word is %llu\n",
         (unsigned long long)atomic_load_explicit(&ready, memory_order_acquire));

  int right = 1;
  for (int y = 0; y < tile_height; y++) {
    for (int x = 0; x < tile_width; x++) right = right && copy_of_tile[y][x] == 6 && !tile[y][x];
  }
  printf("the copy of tile (2, 1) is %s, the tile is cleared\n", right ? "right" : "WRONG");
  return !right;
}
