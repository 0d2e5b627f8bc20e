#!/usr/bin/env bash
# The programs of the manual pages (manual/examples) compile without a warning and do what they say: each checks itself.
set -euo pipefail

if [ -n "${E2E_SANITIZE:-}" ]; then
  echo "skipped: a program without a sanitizer's runtime cannot load a sanitizer build"
  exit 77
fi
work=$(mktemp -d)
cleanup() {
  if [ -n "${serving:-}" ]; then "$E2E_HAUL" serve --stop > /dev/null || true; fi
  rm -rf "$work"
}
trap cleanup EXIT
libraries=$(dirname "$E2E_LIBRARY")
export LD_LIBRARY_PATH=$libraries HAUL_TUNE_CACHE=$work/calibration HAUL_TUNE_BACKGROUND=off HAUL_MOVER_LEASE=off
export HAUL_SERVICE_SOCKET=$work/service.sock

failures=0
ran=0
for source in "$E2E_SOURCE"/manual/examples/*.c; do
  name=$(basename "$source" .c)
  # Memory of another process, with its permission: by a service of one's own.
  if grep -q 'haul_share(' "$source"; then
    if [ -z "${E2E_HAUL:-}" ]; then continue; fi
    "$E2E_HAUL" serve --daemon --idle-exit 600 > /dev/null && serving=1
  fi
  if ! "${CC:-cc}" -std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -I "$E2E_SOURCE/include" "$source" -o "$work/$name" \
    -L "$libraries" -lhaul -lhaul-atomic; then
    failures=$((failures + 1))
    continue
  fi
  if timeout 120 "$work/$name" > "$work/output" 2>&1 && [ -s "$work/output" ]; then
    ran=$((ran + 1))
  else
    echo "FAILED: $name: exit status $?: $(cat "$work/output")"
    failures=$((failures + 1))
  fi
  if [ -n "${serving:-}" ]; then "$E2E_HAUL" serve --stop > /dev/null; fi
  serving=
done
[ $failures = 0 ] || exit 1
echo "$ran programs"
