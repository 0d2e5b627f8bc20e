#!/usr/bin/env bash
# Root hides things: the same tests as an ordinary user, where the tests themselves run as root.
# as_nobody.sh KIND: those of tests/KIND that are GoogleTest's.
set -euo pipefail
kind=${1:-e2e}

if [ "$(id -u)" != 0 ]; then
  echo "skipped: these tests run as an ordinary user already"
  exit 77
fi
if ! command -v setpriv > /dev/null; then
  echo "skipped: setpriv is missing; install util-linux"
  exit 77
fi
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all env -u HOME)
if ! "${as_nobody[@]}" test -r "$E2E_LIBRARY" -a -x "$E2E_PROGRAMS"; then
  echo "skipped: nobody may not read the build directory"
  exit 77
fi
wrapper=()
if [[ "${E2E_SANITIZE:-}" == *thread* ]]; then wrapper=(setarch -R); fi

failed=0
for source in "$E2E_SOURCE/tests/$kind"/*_test.cpp; do
  name=$(basename "$source" .cpp)
  "${as_nobody[@]}" "${wrapper[@]}" "$E2E_PROGRAMS/${kind}_$name" --gtest_brief=1 || { echo "as nobody: $name failed" >&2; failed=1; }
done
exit $failed
