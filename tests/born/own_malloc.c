// A program with a malloc() of its own, as one that jemalloc or tcmalloc is linked into: it gives
// out a static array. Exit status 0: its large allocation lies there.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static _Alignas(16) unsigned char room[8 << 20];
static size_t used;

void* malloc(size_t bytes) {
  const size_t rounded = (bytes + 31) & ~(size_t)15;
  if (bytes > sizeof room || rounded > sizeof room - used) return NULL;
  unsigned char* block = room + used;
  memcpy(block, &bytes, sizeof bytes);
  used += rounded + 16;
  return block + 16;
}
void free(void* block) {
  (void)block;
}
void* calloc(size_t count, size_t each) {
  return malloc(count * each);
}
void* realloc(void* block, size_t bytes) {
  size_t before = 0;
  if (block != NULL) memcpy(&before, (unsigned char*)block - 16, sizeof before);
  void* more = malloc(bytes);
  if (more != NULL && block != NULL) memcpy(more, block, before < bytes ? before : bytes);
  return more;
}

int main(void) {
  unsigned char* const block = malloc(1 << 20);
  if (block == NULL) return 1;
  memset(block, 1, 1 << 20);
  const int own = block > room && block < room + sizeof room;
  free(block);
  return own ? 0 : 1;
}
