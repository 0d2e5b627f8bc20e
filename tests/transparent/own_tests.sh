#!/usr/bin/env bash
# Another project's own tests with and without libhaul-mem.so, under each plan: the results must be the same.
# By hand, as it takes minutes and needs the project's tests.
# Usage: own_tests.sh HAUL python PYTHON [MODULE...]   modules of unittest, else those of CPython that move large buffers
# Usage: own_tests.sh HAUL zstd DIRECTORY              zstd's source, of Debian's `apt-get source libzstd`, which is built
# HAUL_TRANSPARENT_FROM_BYTES is 32K here, so that more calls are taken over.
# (Not under `protected`, where system calls on a copy's memory fail.)
set -euo pipefail
usage() {
  sed -n 's/^# Usage: /usage: /p' "$0" >&2
  exit 2
}
[ $# -ge 3 ] || usage
haul=$1 project=$2 where=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# For each project: begin_PROJECT, once; run_PROJECT COMMAND..., which runs the tests under that command, into a file
# `log` of the current directory, and prints a line for each test with how it ended.
begin_python() {
  modules=("$@")
  [ $# -gt 0 ] || modules=(test.test_{bytes,memoryview,array,hashlib,zlib,mmap,struct,pickle,bz2,buffer,fork1,io})
}
run_python() {
  "$@" "$where" -m unittest -v "${modules[@]}" > log 2>&1 < /dev/null || true
  sed -n 's/^\(test[^ ]* (.*)\).* \.\.\. \(ok\|skipped\|FAIL\|ERROR\|expected failure\).*/\1 \2/p' log | LC_ALL=C sort
}

# Its command line's tests are one script, which stops where one fails.
begin_zstd() {
  { make -j "$(nproc)" -C "$where/programs" zstd && make -C "$where/tests" datagen; } > "$work/make.log" 2>&1 ||
    { tail -20 "$work/make.log" >&2; exit 1; }
}
run_zstd() {
  local status=0
  cp -r "$where/tests" "$where/programs" .
  (
    cd tests
    export ZSTD_BIN=$PWD/../programs/zstd DATAGEN_BIN=$PWD/datagen
    "$@" bash ./playTests.sh
  ) > log 2>&1 < /dev/null || status=$?
  tr '\r' '\n' < log | grep -a '^===>'
  echo "exit status $status"
}

declare -F "run_$project" > /dev/null || usage
"begin_$project" "$@"
in_directory() {
  mkdir "$work/$1.d"
  cd "$work/$1.d"
  "run_$project" "${@:2}" > "$work/$1"
  cd "$work"
}

in_directory none env
[ "$(wc -l < "$work/none")" -gt 1 ] || { tail -5 "$work/none.d/log" >&2; exit 1; }
echo "without haul: $(wc -l < "$work/none") results, $(grep -cE '(FAIL|ERROR|exit status [1-9])' "$work/none" || true) failed"
status=0
for plan in libc caller together deferred blocking auto; do
  HAUL_TRANSPARENT_PLAN=$plan HAUL_TRANSPARENT_FROM_BYTES=32K in_directory $plan "$haul" run --transparent --
  if diff "$work/none" "$work/$plan" > "$work/differences"; then
    echo "$plan: the same results"
  else
    echo "$plan: other results:"
    cat "$work/differences"
    status=1
  fi
done
exit $status
