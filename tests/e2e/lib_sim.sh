# What the tests of bcisim from outside share. Sourced: skips where there is no bcisim or python3; makes $work, which
# goes at the end; $bcisim, $fio (a short trace), $failures.
bcisim=$E2E_BUILD/bin/bcisim
[ -x "$bcisim" ] || { echo "skipped: this build has no bcisim; install what scripts/packages.txt lists for it"; exit 77; }
command -v python3 > /dev/null || { echo "skipped: python3 is missing; install it"; exit 77; }
fio=$E2E_SOURCE/sim/traces/fio.trace

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
failures=0
failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# expect STATUS TEXT ARGUMENTS...: the exit status; a failure says one line that holds TEXT, and no table.
expect() {
  local status=$1 text=$2 found
  shift 2
  timeout 120 "$bcisim" "$@" > "$work/out" 2> "$work/err" < /dev/null
  found=$?
  judge $found "$status" "$text" "bcisim $*"
}

# judge FOUND STATUS TEXT WHAT: the same of what has run; its words are in $work/out and $work/err.
judge() {
  [ "$1" = "$2" ] || failed "$4: exit status $1 instead of $2: $(cat "$work/err")"
  if [ "$2" != 0 ]; then
    [ "$(wc -l < "$work/err")" = 1 ] || failed "$4: not one line: $(cat "$work/err")"
    grep -q '^bcisim: ' "$work/err" || failed "$4: no 'bcisim: ' in front: $(cat "$work/err")"
    [ ! -s "$work/out" ] || failed "$4: fails, yet prints $(head -n 1 "$work/out")"
  fi
  grep -qF -- "$3" "$work/out" "$work/err" || failed "$4: says no '$3': $(cat "$work/err")"
}

# names FOLDER: what is in it, on one line.
names() { (cd "$1" && find . -mindepth 1 | LC_ALL=C sort | tr '\n' ' '); }
