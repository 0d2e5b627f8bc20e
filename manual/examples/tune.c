/* haul_tune: an installer measures the machine once, for all programs
 * of its user. */
#include <haul/haul.h>
#include <stdio.h>

static void show(int percent, void* unused) {
  (void)unused;
  fprintf(stderr, "\r%3d %%", percent);
}

int main(void) {
  int code = haul_tune(show, NULL);
  fprintf(stderr, "\n");
  if (code == 0) printf("measured and stored\n");
  if (code != 0) printf("%s\n", haul_last_error());
  /* Without a mover, or on a busy machine, all stays as it was. */
  return code != 0 && code != HAUL_EAGAIN && code != HAUL_ENOTSUP;
}
