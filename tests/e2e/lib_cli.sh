# What the tests of the command haul from outside share. Sourced: skips where there is none; makes $work, which goes at
# the end; $haul, $failures.
[ -n "${E2E_HAUL:-}" ] || { echo "skipped: this build has no command haul"; exit 77; }
haul=$E2E_HAUL
[ -x "$haul" ] || { echo "the command haul was not built"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Other processes may hold the lease of the mover's core: not this test's matter.
export XDG_CACHE_HOME=$work/cache HAUL_TUNE_BACKGROUND=off HAUL_MOVER_LEASE=off
unset HAUL_TUNE_CACHE HAUL_LOG_LEVEL
failures=0

failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# expect_status STATUS TEXT ARGUMENTS...: the exit status; a failure says one line that holds TEXT.
expect_status() {
  local status=$1 text=$2
  shift 2
  timeout 120 "$haul" "$@" > "$work/out" 2> "$work/err"
  local found=$?
  [ $found = "$status" ] || failed "haul $*: exit status $found instead of $status: $(cat "$work/err")"
  if [ "$status" != 0 ]; then
    [ "$(wc -l < "$work/err")" = 1 ] || failed "haul $*: not one line: $(cat "$work/err")"
    grep -q '^haul: ' "$work/err" || failed "haul $*: no 'haul: ' in front: $(cat "$work/err")"
    if grep -qw bug "$work/err"; then failed "haul $*: calls it a bug: $(cat "$work/err")"; fi
  fi
  grep -qF -- "$text" "$work/out" "$work/err" ||
    failed "haul $*: says no '$text': $(cat "$work/out" "$work/err")"
}
