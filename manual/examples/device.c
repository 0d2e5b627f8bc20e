/* haul_space_open_device: a program copies to a GPU where there is one.
 * Its pointer comes from cudaMalloc(). */
#include <haul/haul.h>
#include <stdio.h>

/* Returns a request that copies bytes of this process to the GPU. */
static haul_request to_gpu(haul_space gpu, void* gpu_pointer,
                           const void* from, size_t bytes) {
  haul_request request = haul_request_copy(gpu_pointer, from, bytes);
  request.dst.space = gpu;
  return request;
}

int main(void) {
  static char bytes[4096];
  haul_space gpu;
  int code = haul_space_open_device("cuda:0", &gpu);
  if (code == HAUL_ENOTSUP) {
    printf("without a GPU: %s\n", haul_last_error());
    return 0;
  }
  if (code != 0) return 1;
  /* (A number that cudaMalloc() has not given: the request fails.) */
  haul_request request =
      to_gpu(gpu, (void*)0x1000, bytes, sizeof bytes);
  haul_ticket ticket;
  if (haul_submit(&request, 1, &ticket) == 1) code = haul_wait(ticket);
  printf("%s\n", haul_strerror(code));
  return haul_space_close(gpu) != 0 || code != HAUL_EFAULT;
}
