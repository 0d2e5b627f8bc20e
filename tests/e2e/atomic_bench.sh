#!/bin/bash
# The benchmarks of remote atomics: the rows that others read, and that one which is killed leaves no namespace, no XDP
# program and no process.
set -u
[ -n "${E2E_HAUL:-}" ] && [ -x "$E2E_HAUL" ] || { echo "skipped: this build has no command haul"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: network namespaces need root"; exit 77; }
unshare --net true 2> /dev/null || { echo "skipped: no network namespaces here"; exit 77; }
[ "$(nproc)" -gt 1 ] || { echo "skipped: two hosts need two CPUs"; exit 77; }
"$E2E_HAUL" info 2> /dev/null | grep -q '^ *xdp .*yes' || { echo "skipped: no XDP here"; exit 77; }
haul=$E2E_HAUL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HAUL_TUNE_BACKGROUND=off HAUL_MOVER_LEASE=off
failures=0
failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

namespaces() { lsns --type net --noheadings --output NS 2> /dev/null | sort; }
programs() { ip -details link show | grep -c xdp; }
# within WHAT COMMAND...: true within some seconds.
within() {
  local what=$1
  shift
  for _ in $(seq 100); do
    "$@" && return
    sleep 0.1
  done
  failed "$what"
}

# ---- rows
timeout 240 "$haul" bench lock --quick --json "$work/rows.json" > "$work/out" 2>&1 || failed "haul bench lock: $(tail -n 1 "$work/out")"
for field in responder mode placement op contenders rate_per_s median_us p99_us bystander_ratio ratio_to_best_host home_process_share home_softirq_share; do
  grep -q "\"$field\":" "$work/rows.json" || failed "rows of lock lack $field"
done
for text in xdp-skb poll spin block inline rps apart shared; do
  grep -q "\"$text\"" "$work/rows.json" || failed "rows of lock lack $text"
done

# ---- killed in the middle
before=$(namespaces)
programs_before=$(programs)
for suite in atomic lock bystander bystander-bandwidth; do
  setsid "$haul" bench "$suite" --quick > "$work/out" 2>&1 &
  bench=$!
  has_namespaces() { [ "$(namespaces)" != "$before" ]; }
  within "haul bench $suite makes no namespaces: $(cat "$work/out")" has_namespaces
  sleep 1.5
  kill -KILL "$bench"
  wait "$bench" 2> /dev/null
  is_alone() { [ -z "$(ps -o pid= -s "$bench")" ]; }
  within "haul bench $suite, killed, leaves processes: $(ps -o args= -s "$bench")" is_alone
  is_clean() { [ "$(namespaces)" = "$before" ] && [ "$(programs)" = "$programs_before" ]; }
  within "haul bench $suite, killed, leaves namespaces or programs" is_clean
done
[ $failures = 0 ] && echo "all well"
exit $((failures > 0))
