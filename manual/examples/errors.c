/* haul_last_error, haul_strerror, haul_version: a request without a
 * source is refused. */
#include <haul/haul.h>
#include <stdio.h>

int main(void) {
  char buffer[64];
  haul_request request = haul_request_copy(buffer, NULL, sizeof buffer);
  int code = haul_submit(&request, 1, NULL);
  printf("haul %s: %s\n", haul_version(), haul_strerror(code));
  printf("%s\n", haul_last_error());
  return code != HAUL_EINVAL;
}
