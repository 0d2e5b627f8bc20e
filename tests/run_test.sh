#!/usr/bin/env bash
# How CTest runs a test: run_test.sh [--length OPTION SHORT LONG] [--at-once N] COMMAND [ARGUMENT...]
# --length: the command gets OPTION with SHORT, or with LONG where HAUL_TEST_LONG=1 (.ci/run) asks for the whole of it.
# --at-once: N processes of a GoogleTest program run at once, each a part of its cases; what they print comes one after
# the other.
# With HAUL_TEST_TRIES=2 what fails is tried once more: of a GoogleTest program each case that failed, in a process of
# its own; all of what ends otherwise. A host that is short of time for a moment fails a test that waits for another
# process. What fails twice fails.
set -uo pipefail
length=()
if [ "$1" = --length ]; then
  length=("$2" "$3")
  [ "${HAUL_TEST_LONG:-}" != 1 ] || length=("$2" "$4")
  shift 4
fi
at_once=1
if [ "$1" = --at-once ]; then
  at_once=$2
  shift 2
fi
command=("$@" "${length[@]}")
tries=${HAUL_TEST_TRIES:-1}
unset HAUL_TEST_TRIES
output=$(mktemp)
trap 'rm -f "$output"*' EXIT

parts_at_once() {
  local parts=() worst=0 part
  for ((part = 0; part < at_once; ++part)); do
    (
      trap - INT QUIT  # which a shell has programs in the background ignore
      GTEST_TOTAL_SHARDS=$at_once GTEST_SHARD_INDEX=$part exec "${command[@]}"
    ) > "$output.$part" 2>&1 &
    parts+=($!)
  done
  for ((part = 0; part < at_once; ++part)); do
    wait "${parts[part]}" || worst=$?
    cat "$output.$part"
  done
  return "$worst"
}
if [ "$at_once" = 1 ]; then
  "${command[@]}" 2>&1 | tee "$output"
else
  parts_at_once | tee "$output"
fi
status=${PIPESTATUS[0]}
if [ "$status" = 0 ] || [ "$status" = 77 ] || [ "$tries" = 1 ]; then exit "$status"; fi

failed=()
if [ "$(grep -c '^\[==========\] .* ran\.' "$output")" -ge "$at_once" ]; then
  mapfile -t failed < <(sed -n 's/^\[  FAILED  \] \([^ ,]*\.[^ ,]*\).*/\1/p' "$output" | sort -u)
fi
if [ ${#failed[@]} = 0 ]; then
  echo "second try, after status $status: ${command[*]}"
  exec "${command[@]}"
fi
unset GTEST_TOTAL_SHARDS GTEST_SHARD_INDEX
for case in "${failed[@]}"; do
  echo "second try: $case"
  "${command[@]}" --gtest_filter="$case" || exit 1
done
