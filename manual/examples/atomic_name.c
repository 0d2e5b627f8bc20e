/* haul_atomic_window_format, haul_atomic_window_parse,
 * haul_atomic_window_attach, haul_atomic_window_counters: another
 * process of the host is told a window's name as text, maps the window
 * and writes to it. */
#include <haul/atomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int visitor(const char* text) {
  haul_atomic_window_name name;
  haul_atomic_window* window;
  uint64_t values[64];
  if (haul_atomic_window_parse(text, &name) != 0 ||
      haul_atomic_window_attach(&name, &window) != 0 ||
      haul_atomic_window_counters(&name, values, 64) < 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  uint64_t* word = haul_atomic_window_memory(window);
  __atomic_store_n(word, 42, __ATOMIC_SEQ_CST);
  return haul_atomic_window_destroy(window) != 0;
}

int main(void) {
  int ends[2], status = 1;
  char text[160] = "";
  if (pipe(ends) != 0) return 1;
  pid_t other = fork(); /* before the node is opened: a process apart */
  if (other == 0) {
    if (read(ends[0], text, sizeof text) <= 0) _exit(1);
    _exit(visitor(text));
  }
  haul_atomic_node* node;
  haul_atomic_window* window;
  haul_atomic_window_name name;
  if (haul_atomic_node_open("block:127.0.0.1", NULL, &node) != 0 ||
      haul_atomic_window_create(node, 64, &window) != 0 ||
      haul_atomic_window_export(window, &name) != 0 ||
      haul_atomic_window_format(&name, text, sizeof text) != 0) {
    fprintf(stderr, "%s\n", haul_last_error());
    return 1;
  }
  printf("%s\n", text);
  if (write(ends[1], text, sizeof text) != sizeof text) return 1;
  waitpid(other, &status, 0);
  uint64_t word =
      *(volatile uint64_t*)haul_atomic_window_memory(window);
  printf("the visitor wrote %llu\n", (unsigned long long)word);
  haul_atomic_node_close(node);
  haul_atomic_window_destroy(window);
  return status != 0 || word != 42;
}
