#!/bin/bash
# The command haul from outside, what measures the machine or sends messages: demo, tune, and clean.
set -u
. "$(dirname "$0")/lib_cli.sh"

# ---- top, where no service runs. (Where programs send messages by haul, it shows those.)
grep -q "@haul-fabric[.]" /proc/net/unix ||
  HAUL_SERVICE_SOCKET=$work/none.sock expect_status 1 'start one with `haul serve`' top --count 1

# ---- demo, also on one CPU
expect_status 0 'Every byte' demo
if command -v taskset > /dev/null; then
  cpu=$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')
  timeout 120 taskset -c "$cpu" "$haul" demo > "$work/out" 2> "$work/err" || failed "demo on one CPU: $(cat "$work/err")"
  grep -q 'No CPU is free' "$work/out" || failed 'demo on one CPU does not say so'
  grep -q 'Left out: ' "$work/out" || failed 'demo on one CPU does not say that messages are left out'
fi

# ---- tune and clean: what one stores the other removes, and nothing else
# On a busy machine haul says so, and keeps nothing.
tuned=no
for _ in 1 2 3 4 5 6 7 8 9; do
  timeout 120 "$haul" tune > "$work/out" 2> "$work/err" && tuned=yes && break
  [ -z "$(find "$work/cache" -name 'calibration*' 2> /dev/null)" ] || failed 'a failed tune stores'
  grep -q 'try again\|too busy' "$work/err" || failed "tune: $(cat "$work/err")"
  sleep 1
done
if [ $tuned = yes ]; then
  grep -q 'calibrated' "$work/out" || failed 'tune does not say so'
  grep -q 'measured [0-9-]* [0-9:]* UTC: the measuring thread ran' "$work/out" || failed 'tune: how well?'
  [ -n "$(find "$work/cache/haul" -type f)" ] || failed 'tune stores nothing'
  # Rings are measured where two CPUs are quiet for so long, and the provider is built.
  if grep -q 'messages between processes:' "$work/out"; then
    tr -s ' \n' ' ' < "$work/out" | grep -q 'in parts of [0-9]* KiB.*as measured: 4 KiB [0-9.]* [nu]s' || failed 'tune: which ring?'
    grep -q '^near_measured_at=[1-9]' "$work"/cache/haul/calibration-* || failed 'tune stores no ring'
  else
    grep -q 'busy with other work\|one CPU only\|without its libfabric' "$work/out" || failed "tune: rings: $(cat "$work/out")"
  fi
else
  mkdir -p "$work/cache/haul"
  printf 'haul calibration\nversion=5\nmeasured_at=1795452138\nran_share=0.985\nstolen_share=0.000\nspread=0.235\n' \
    > "$work/cache/haul/calibration-of-a-quiet-machine"
fi
file=$(find "$work/cache/haul" -type f | head -n 1)
expect_status 0 'UTC' info
grep -q 'measured  *[0-9-]* [0-9:]* UTC' "$work/out" || failed 'info does not say when it was measured'
touch "$file.4242.tmp"
expect_status 0 'would remove an unfinished file' clean --dry-run
[ -e "$file" ] || failed 'clean --dry-run removes'
expect_status 0 'removed a calibration' clean
[ -e "$work/cache/haul" ] && failed 'clean leaves something'
expect_status 0 'nothing to remove' clean
mkdir -p "$work/mine"
touch "$work/mine/figures" "$work/mine/figures.17.tmp" "$work/mine/other" "$work/mine/other.17.tmp"
HAUL_TUNE_CACHE=$work/mine/figures "$haul" clean > /dev/null || failed 'clean of a named file'
[ "$(cd "$work/mine" && echo *)" = 'other other.17.tmp' ] || failed 'clean removed what is not haul'"'"'s'
(unset HOME XDG_CACHE_HOME; "$haul" clean > /dev/null && "$haul" info > /dev/null) || failed 'clean or info without HOME'

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
