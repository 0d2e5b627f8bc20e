#!/usr/bin/env bash
# The library under dlopen() and dlclose(), as a plug-in loads it: it stays (nodelete), its mover is not cut from under itself, it
# works when opened again, and a program that does not link pthread explicitly can open it.
set -euo pipefail

if [ -n "${E2E_SANITIZE:-}" ]; then
  echo "skipped: a sanitizer's runtime lies in the program"
  exit 77
fi
compiler=${CC:-cc}
if ! command -v "$compiler" > /dev/null; then
  echo "skipped: no C compiler"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat > "$work/plugin_user.c" <<'PROGRAM'
#include <dlfcn.h>
#include <haul/haul.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *path;

static void check(int condition, const char *what) {
  if (condition) return;
  const char *why = dlerror();
  fprintf(stderr, "dlopen test: %s (%s)\n", what, why != NULL ? why : "no dl error");
  _exit(1);
}

static void *use(void *unused) {
  enum { bytes = 4 << 20 };
  char *src = malloc(bytes), *dst = calloc(1, bytes);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  check(library != NULL, "it does not open");
  haul_ticket (*copy)(void *, const void *, size_t) = (haul_ticket(*)(void *, const void *, size_t))dlsym(library, "haul_copy");
  int (*wait)(haul_ticket) = (int (*)(haul_ticket))dlsym(library, "haul_wait");
  int (*wake)(void) = (int (*)(void))dlsym(library, "haul_wake");
  check(copy != NULL && wait != NULL && wake != NULL, "a symbol is missing");
  memset(src, 0x5b, bytes);
  wake();
  haul_ticket ticket = copy(dst, src, bytes);
  check(dlclose(library) == 0, "it does not close");
  check(dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL, "it went away at dlclose()");
  check(wait(ticket) == 0 && memcmp(dst, src, bytes) == 0, "the bytes are wrong");
  free(src);
  free(dst);
  return unused;
}

int main(int count, char **arguments) {
  (void)count;
  path = arguments[1];
  alarm(60);
  for (int round = 0; round < 20; ++round) use(NULL);
  for (int round = 0; round < 20; ++round) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) check(pthread_create(&threads[i], NULL, use, NULL) == 0, "no thread");
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  }
  return 0;
}
PROGRAM
"$compiler" -std=gnu11 -I "$E2E_SOURCE/include" "$work/plugin_user.c" -o "$work/plugin_user" -ldl -lpthread
HAUL_TUNE_BACKGROUND=off HAUL_MOVER_LEASE=off "$work/plugin_user" "$E2E_LIBRARY"

# LD_PRELOAD into a program that knows nothing of it changes nothing.
out=$(LD_PRELOAD="$E2E_LIBRARY" /bin/echo "unchanged" 2>&1)
[ "$out" = "unchanged" ] || { echo "dlopen test: LD_PRELOAD says '$out'" >&2; exit 1; }
if command -v strace > /dev/null; then
  LD_PRELOAD="$E2E_LIBRARY" strace -f -o "$work/trace" /bin/true 2> /dev/null || exit 0  # no ptrace here
  ! grep -qE 'clone|membarrier|eventfd|socket' "$work/trace" ||
    { echo "dlopen test: being loaded already does something: $(grep -m1 -E 'clone|membarrier|eventfd|socket' "$work/trace")" >&2; exit 1; }
fi
