#!/usr/bin/env bash
# Root hides things: the same tests as an ordinary user, where the tests themselves run as root.
set -euo pipefail

if [ "$(id -u)" != 0 ]; then
  echo "skipped: these tests run as an ordinary user already"
  exit 77
fi
if ! command -v setpriv > /dev/null; then
  echo "skipped: setpriv is missing; install util-linux"
  exit 77
fi
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all env -u HOME)
if ! "${as_nobody[@]}" test -r "$E2E_LIBRARY" -a -x "$E2E_PROGRAMS/e2e_order_test"; then
  echo "skipped: nobody may not read the build directory"
  exit 77
fi
wrapper=()
if [[ "${E2E_SANITIZE:-}" == *thread* ]]; then wrapper=(setarch -R); fi

failed=0
for name in alloc bad_arguments checked clone fork handler hostile hpp lease life limits order peer service_copy service_corner service_fault service_grant service_places signal start struct_size tickets; do
  "${as_nobody[@]}" "${wrapper[@]}" "$E2E_PROGRAMS/e2e_${name}_test" --gtest_brief=1 || { echo "as nobody: $name failed" >&2; failed=1; }
done
exit $failed
