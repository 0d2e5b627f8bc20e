/* A program that makes a known number of large copies, for tests/e2e/run_transparent.sh.
 *
 *   transparent_copies COUNT MEBIBYTES [fork | exec | wait FILE | exit STATUS | small]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void copy(int count, size_t bytes) {
  unsigned char* from = malloc(bytes);
  if (from == NULL) exit(9);
  for (size_t i = 0; i < bytes; ++i) from[i] = (unsigned char)(i * 7);
  for (int turn = 0; turn < count; ++turn) {
    unsigned char* to = malloc(bytes);
    if (to == NULL) exit(9);
    memcpy(to, from, bytes);
    for (size_t i = 0; i < bytes; i += 4095)
      if (to[i] != (unsigned char)(i * 7)) exit(8);
    free(to);
  }
  free(from);
}

int main(int argc, char** argv) {
  if (argc < 3) return 9;
  const int count = atoi(argv[1]);
  const size_t bytes = (size_t)atol(argv[2]) << 20;
  const char* then = argc > 3 ? argv[3] : "";
  if (strcmp(then, "small") == 0) {
    copy(count, bytes - 1);
    return 0;
  }
  copy(count, bytes);
  printf("copied\n");
  fflush(stdout);
  if (strcmp(then, "fork") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      copy(count, bytes);
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return status != 0;
  }
  if (strcmp(then, "exec") == 0) {
    execl("/proc/self/exe", "again", argv[1], argv[2], (char*)NULL);
    return 9;
  }
  if (strcmp(then, "wait") == 0 && argc > 4) {
    FILE* file = fopen(argv[4], "w");
    if (file != NULL) fclose(file);
    for (;;) pause();
  }
  return strcmp(then, "exit") == 0 && argc > 4 ? atoi(argv[4]) : 0;
}
