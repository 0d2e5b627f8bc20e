#!/bin/bash
# The command haul from outside: exit codes, one-line errors, JSON, manual pages. (demo_test.sh: what
# measures the machine.)
set -u
. "$(dirname "$0")/lib_cli.sh"

# expect_json FILE EXPRESSION: FILE is one JSON document d for which the Python EXPRESSION holds.
if command -v python3 > /dev/null; then
  expect_json() {
    python3 - "$1" "$2" << 'EOF' || failed "not true of $1: $2"
import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)
EOF
  }
elif command -v jq > /dev/null; then
  expect_json() { jq -e . "$1" > /dev/null || failed "$1 is no JSON"; }
else
  expect_json() { [ -s "$1" ] || failed "$1 is empty"; }
fi

# ---- usage errors: 2, one line
expect_status 2 'name a command'
expect_status 2 'nonsense' nonsense
expect_status 2 '--nonsense' info --nonsense
expect_status 2 'see `haul bench --help`' bench
expect_status 2 "'fast' is not one of hide|latency" bench fast
expect_status 2 '--sizes' bench hide --sizes banana
expect_status 2 '0 bytes' bench hide --sizes 0
expect_status 2 "'warp' is not one of cpu|" bench latency --engine warp
expect_status 2 "'often' is not one of cached|overlapped|blocking|all" bench latency --engine cpu --registration often
expect_status 2 'add --engine' bench latency --registration cached
expect_status 2 '--engine is for hide, latency' bench threads --engine cpu
expect_status 2 '--size' explain --size -1
expect_status 2 '--size' explain --size 99999999999G
expect_status 2 "'move' is not one of copy|fill" explain --op move
expect_status 2 '--dst-affinity' explain --dst-affinity warm
expect_status 2 'excludes' explain --hot --cold
expect_status 2 'excludes' explain --inline --dedicated
expect_status 2 "'tcsh' is not one of bash|zsh|fish" completion tcsh
expect_status 2 'no page' man nonsense

# ---- failures: 1, one line
expect_status 1 'cannot write' bench order --quick --json /proc/nonexistent/rows.json
expect_status 1 'engine cma is no device' bench latency --engine cma
expect_status 1 'cannot write' man --out /dev/null/pages
expect_status 1 'smaller sizes' explain --size 4096G
if [ -w /dev/full ]; then
  timeout 60 "$haul" info > /dev/full 2> "$work/err"
  [ $? = 1 ] || failed "info to a full disk does not fail"
fi

# ---- help and version, everywhere
expect_status 0 'haul 0.' --version
expect_status 0 'HAUL_MOVER_SPIN_US' --help
for command in demo info tune explain bench run serve top nic clean completion man; do
  expect_status 0 'HAUL_PLAN_INLINE_BYTES' "$command" --help
  expect_status 0 "Usage: haul $command" "$command" --help
done

# ---- info and explain
expect_status 0 'Engines' info
expect_status 0 '' info --json
cp "$work/out" "$work/info.json"
expect_json "$work/info.json" 'd["cpus"] and any(e["name"] == "cpu" and e["available"] for e in d["engines"])'
HAUL_MOVER_SPIN_US=banana HAUL_MOVER_SPINN=1 HAUL_LOG_LEVEL=error timeout 60 "$haul" info > "$work/out" 2> /dev/null
grep -q 'unusable' "$work/out" || failed 'info does not name an unusable setting'
grep -q 'HAUL_MOVER_SPINN.*misspelt' "$work/out" || failed 'info does not name an unknown setting'
if grep -q $'\033' "$work/out"; then failed 'colour in a pipe'; fi
expect_status 0 'Why' explain --size 1M
expect_status 0 '' explain --size 64K --hot --json
cp "$work/out" "$work/plan.json"
expect_json "$work/plan.json" 'd["size_bytes"] == 65536 and d["cache"] == "hot" and len(d["reasons"]) >= 1'
expect_status 0 '' explain --size 1M --inline --json
cp "$work/out" "$work/plan.json"
expect_json "$work/plan.json" 'd["scheme"].startswith("S") and d["mover"] == "caller"'
expect_status 0 'fill of 4 KiB' explain --op fill --size 4K --checked --dst-affinity neutral --fresh

# ---- bench: every suite once, small; the rows carry the names that others rely on
fields() { # SUITE FIELD...
  local suite=$1 names=$2 sizes=$3
  expect_status 0 '' bench "$suite" --quick --sizes "$sizes" --json "$work/rows.json"
  expect_json "$work/rows.json" "d['suite'] == '$suite' and d['host'] and d['date'] and d['rows']"
  expect_json "$work/rows.json" "all(k in r for r in d['rows'] for k in '$names'.split())"
}
fields hide 'scheme engine cache placement size_bytes memcpy_ns compute_ns read_ns total_ns bound_ns serial_ns overlap round_trip_ns' 100,64K
fields latency 'scheme engine cache size_bytes haul_ns haul_p99_ns memcpy_ns ratio placement' 64,16K
fields bandwidth 'scheme engine cache size_bytes window haul_gbps memcpy_gbps placement' 1M
fields split 'submit_ns test_ns wake_ns copy_ns' 4K
fields threads 'threads haul_gbps memcpy_gbps' 64K
fields affinity 'source destination size_bytes source_ns_per_line destination_ns_per_line bystander_ns_per_line undisturbed_ns_per_line' 256K
expect_json "$work/rows.json" 'len({(r["source"], r["destination"]) for r in d["rows"]}) == 9'
fields checked 'scheme engine cache size_bytes checked_ns unchecked_ns ratio' 4K
fields order 'memcpy_ns sum_ns total_ns ratio placement' 1M
fields fresh 'dst size_bytes memcpy_ns placement' 1M
expect_json "$work/rows.json" 'all("inline_ratio" in r and "together_ratio" in r or "preload_ratio" in r for r in d["rows"])'
fields protect 'mechanism page_size size_bytes protect_ns memcpy_ns ratio' 64K
fields transparent 'plan page_size fresh size_bytes blocking_ns call_ns call_ratio total_ns spared_ratio touch_ns' 1M
expect_json "$work/rows.json" '{r["plan"] for r in d["rows"]} == {"none", "auto", "caller", "together", "deferred", "protected"}'
fields receive-overhead 'scheme engine registration cache placement size_bytes memcpy_cpu_ns caller_cpu_ns mover_cpu_ns kernel_cpu_ns device_cpu_ns ratio ratio_q25 read_ns label' 4K
expect_json "$work/rows.json" '{(r["scheme"], r["engine"]) for r in d["rows"]} == {("SCNI", "cpu"), ("MCNI", "cpu")}'
expect_json "$work/rows.json" '{"hot", "cold"} <= {r["cache"] for r in d["rows"]} and all(r["caller_cpu_ns"] > 0 for r in d["rows"])'
# The schemes of each engine. io_uring's registers memory, and its copies are other threads' work.
uring=$(python3 -c 'import json, sys; print(next(e["available"] for e in json.load(open(sys.argv[1]))["engines"] if e["name"] == "uring"))' \
  "$work/info.json" 2> /dev/null)
if [ "$uring" = True ]; then
  expect_json "$work/info.json" 'any("to register a page" in e["status"] for e in d["engines"] if e["name"] == "uring")'
  expect_status 0 'no hardware' bench split --quick --sizes 64K --engine cpu,uring --registration all --json "$work/rows.json"
  expect_json "$work/rows.json" '{(r["scheme"], r["engine"], r["registration"]) for r in d["rows"]} == {("SCNI", "cpu", "none"), ("MCNI", "cpu", "none")} | {(s, "uring", m) for s in ("SCI", "MCI") for m in ("cached", "overlapped", "blocking")}'
  expect_json "$work/rows.json" 'all((r["register_ns"] is None) == (r["registration"] in ("none", "cached")) for r in d["rows"])'
  expect_json "$work/rows.json" 'all((r["engine_share"] > (0.99 if r["scheme"] == "SCI" else 0) and r["kernel_cpu_ns"] > 0) if r["engine"] == "uring" else r["kernel_cpu_ns"] == 0 for r in d["rows"])'
  expect_json "$work/rows.json" 'all((r["label"] == "no hardware") == (r["engine"] == "uring") for r in d["rows"])'
  [ "$(nproc)" -lt 2 ] ||
    expect_json "$work/rows.json" 'all((r["mover_cpu_ns"] > 0) == (r["scheme"][0] == "M") for r in d["rows"])'
  for suite in latency bandwidth hide receive-overhead; do
    expect_status 0 'no hardware' bench $suite --quick --sizes 4K --engine uring --json "$work/rows.json"
    expect_json "$work/rows.json" '{(r["scheme"], r["registration"]) for r in d["rows"]} == {("SCI", "cached"), ("MCI", "cached")} and all("caller_cpu_ns" in r and r["placement"] for r in d["rows"])'
  done
  fields pinning 'engine registration parts size_bytes copy_ns register_ns caller_cpu_ns mover_cpu_ns kernel_cpu_ns ratio' 64K
  expect_json "$work/rows.json" '[(r["registration"], r["parts"]) for r in d["rows"]] == [("blocking", "whole"), ("cached", "whole"), ("overlapped", "growing"), ("none", "-"), ("blocking", "16 KiB")]'
  expect_json "$work/rows.json" 'all((r["kernel_cpu_ns"] > 0) == (r["engine"] == "uring") for r in d["rows"])'
fi
# Programs that are not installed are left out, each with its remedy.
PATH=/nonexistent "$haul" bench programs --quick --json "$work/rows.json" > "$work/out" 2> "$work/err" ||
  failed "bench programs without programs fails: $(cat "$work/err")"
grep -q 'install python3' "$work/err" || failed "bench programs does not say what to install: $(cat "$work/err")"
expect_json "$work/rows.json" 'd["suite"] == "programs" and d["rows"] == []'
expect_status 0 '' bench latency --quick --sizes 4K --json -
cp "$work/out" "$work/rows.json"
expect_json "$work/rows.json" '{r["cache"] for r in d["rows"]} == {"hot", "l3", "cold"}'
if [ -s "$work/err" ] && ! grep -q 'note' "$work/err"; then failed "bench is not silent in a pipe: $(cat "$work/err")"; fi

# ---- manual pages
expect_status 0 'wrote 17 pages' man --out "$work/man"
for page in "$work"/man/*; do
  if command -v groff > /dev/null; then
    warnings=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
    [ -z "$warnings" ] || failed "$page: $warnings"
  fi
  if command -v mandoc > /dev/null; then
    mandoc -T lint -W warning "$page" || failed "$page"
  fi
done
expect_status 0 '# haul-bench' man bench --markdown
expect_status 0 'wrote 17 pages' man --markdown --out "$work/markdown"
[ -s "$work/markdown/haul.md" ] || failed 'haul man --markdown writes no haul.md'

# ---- the guide's table of knobs is the command's
"$haul" man --knobs-markdown > "$work/knobs"
grep '^|' "$(dirname "$0")/../../docs/guide/knobs.md" | diff - "$work/knobs" > "$work/out" ||
  failed "docs/guide/knobs.md is not what haul man --knobs-markdown prints: $(cat "$work/out")"

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
