#!/usr/bin/env bash
# Another project's own tests with and without libhaul-mem.so, under each plan: the results must be the same.
# By hand, as it takes minutes and needs the project's tests.
# Usage: own_tests.sh HAUL PYTHON [MODULE...]   (of unittest; else those of CPython that move large buffers)
# HAUL_TRANSPARENT_FROM_BYTES is 32K here, so that more calls are taken over.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 's/^# Usage: /usage: /p' "$0" >&2; exit 2; }
haul=$1 python=$2
shift 2
modules=("$@")
[ $# -gt 0 ] || modules=(test.test_{bytes,memoryview,array,hashlib,zlib,mmap,struct,pickle,bz2,buffer,fork1,io})

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# results NAME COMMAND...: a line for each test, and how it ended.
results() {
  local name=$1
  shift
  "$@" "$python" -m unittest -v "${modules[@]}" > "$work/$name.log" 2>&1 < /dev/null || true
  sed -n 's/^\(test[^ ]* (.*)\).* \.\.\. \(ok\|skipped\|FAIL\|ERROR\|expected failure\).*/\1 \2/p' "$work/$name.log" |
    LC_ALL=C sort > "$work/$name"
  sed -n 's/^Ran \([0-9]* tests\).*/\1/p' "$work/$name.log" | tail -1
}

ran=$(results none env)
[ -n "$ran" ] && [ -s "$work/none" ] || { tail -5 "$work/none.log" >&2; exit 1; }
echo "without haul: ran $ran, $(grep -c ' ok$' "$work/none") ok, $(grep -cE ' (FAIL|ERROR)$' "$work/none" || true) failed"
status=0
for plan in libc caller together deferred blocking auto; do
  ran=$(HAUL_TRANSPARENT_PLAN=$plan HAUL_TRANSPARENT_FROM_BYTES=32K results $plan \
    "$haul" run --transparent --)
  if diff "$work/none" "$work/$plan" > "$work/differences"; then
    echo "$plan: ran $ran, the same results"
  else
    echo "$plan: ran $ran, other results:"
    cat "$work/differences"
    status=1
  fi
done
exit $status
