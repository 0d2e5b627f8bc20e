#!/usr/bin/env bash
# haul run --transparent from outside: what it refuses, what it passes on, and what it says and writes of a program
# whose copies are known.
set -u
[ -n "${E2E_HAUL:-}" ] || { echo "skipped: this build has no command haul"; exit 77; }
[ -z "${E2E_SANITIZE:-}" ] || { echo "skipped: a sanitizer's runtime must be loaded first"; exit 77; }
haul=$E2E_HAUL
copies=$E2E_PROGRAMS/transparent_copies

work=$(mktemp -d)
running=''
cleanup() {
  [ -z "$running" ] || kill -KILL "$running" 2> /dev/null
  rm -rf "$work"
}
trap cleanup EXIT
mkdir "$work/tmp"
export XDG_CACHE_HOME=$work/cache HAUL_TUNE_BACKGROUND=off HAUL_MOVER_LEASE=off TMPDIR=$work/tmp
unset LD_PRELOAD HAUL_LOG_LEVEL HAUL_TRANSPARENT_PLAN HAUL_TRANSPARENT_FROM_BYTES HAUL_TRANSPARENT_REPORT HAUL_MOVER_SPIN_US
failures=0

failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# expect STATUS TEXT ARGUMENT...: the exit status of haul run ARGUMENT..., and a text in what it prints. With 1 and 2
# it is one line of haul's.
expect() {
  local status=$1 text=$2
  shift 2
  timeout -s KILL 120 "$haul" run "$@" > "$work/out" 2> "$work/err"
  local found=$?
  [ $found = "$status" ] || failed "haul run $*: exit status $found instead of $status: $(tail -3 "$work/err")"
  if [ "$status" = 1 ] || [ "$status" = 2 ]; then
    [ "$(grep -c . "$work/err")" = 1 ] || failed "haul run $*: not one line: $(cat "$work/err")"
    grep -q '^haul: ' "$work/err" || failed "haul run $*: no 'haul: ' in front: $(cat "$work/err")"
  fi
  [ -z "$text" ] || grep -qF -- "$text" "$work/out" "$work/err" || failed "haul run $*: says no '$text': $(cat "$work/err" "$work/out")"
}
# expect_json EXPRESSION: the document d for which the Python EXPRESSION holds.
expect_json() {
  command -v python3 > /dev/null || { [ -s "$work/d.json" ] || failed 'no document'; return; }
  python3 - "$work/d.json" "$1" << 'EOF' || failed "not true of the document: $1: $(cat "$work/d.json")"
import json, sys
d = json.load(open(sys.argv[1], encoding="utf-8"))
def total(what, processes):
    return sum(way[what] for process in processes for site in process["sites"] if "transparent_copies" in site["module"]
               for kind in site["kinds"] for way in kind["ways"].values())
sys.exit(0 if eval(sys.argv[2]) else 1)
EOF
}

# ---- usage, and failures
expect 2 'say how to run' --mpi --transparent -- true
expect 2 'go with --mpi' --transparent --strict -- true
expect 2 'go with --mpi' --transparent --alloc-mem -- true
expect 2 'name a command' --transparent
expect 2 'name a command' --transparent --report --
expect 1 'no-such-program' --transparent -- no-such-program
expect 1 'no-such-program' --transparent --report -- no-such-program
expect 1 '/proc/nonexistent' --transparent -- /proc/nonexistent/program
expect 1 'cannot write' --transparent --json /proc/nonexistent/d.json -- "$copies" 1 1 exit 5

mkdir -p "$work/a b"
cp -a "$(dirname "$(readlink -f "$E2E_LIBRARY")")"/libhaul*.so* "$work/a b"
LD_LIBRARY_PATH="$work/a b" expect 1 'has a blank' --transparent -- true

# ---- what is set up
expect 0 'LD_PRELOAD=' --transparent --dry-run -- "$copies" 1 1 wait "$work/never"
grep -q 'libhaul-mem.so' "$work/out" || failed "--dry-run: $(cat "$work/out")"
grep -q 'HAUL_MOVER_SPIN_US=' "$work/out" || failed "--dry-run: $(cat "$work/out")"
[ ! -e "$work/never" ] || failed '--dry-run ran the program'
bash -c "$(sed 's/ wait .*//' "$work/out")" > "$work/again" || failed "the setup is no command: $(cat "$work/out")"
[ "$(cat "$work/again")" = copied ] || failed "the setup runs something else: $(cat "$work/again")"
# (libm stands for what a user preloads.)
LD_PRELOAD=libm.so.6 HAUL_MOVER_SPIN_US=7 timeout 60 "$haul" run --transparent --dry-run -- true > "$work/out" 2> "$work/err"
grep -q 'LD_PRELOAD=.*libhaul-mem.so:libm.so.6' "$work/out" || failed "another LD_PRELOAD: $(cat "$work/out")"
grep -q 'HAUL_MOVER_SPIN_US' "$work/out" && failed "a knob of the user's: $(cat "$work/out")"

# ---- what is passed on
expect 0 copied --transparent -- "$copies" 2 2
expect 7 copied --transparent -- "$copies" 2 2 exit 7
expect 7 copied --transparent --report -- "$copies" 2 2 exit 7
[ "$(cat "$work/out")" = copied ] || failed "--report: standard output is not the program's: $(cat "$work/out")"
expect 143 '' --transparent --report -- bash -c 'kill -TERM $$'
expect 0 'in' --transparent -- bash -c 'read -r line && echo "$line"' <<< 'from standard in'

# ---- the report
expect 0 'transparent_copies' --transparent --report -- "$copies" 3 4
grep -q '3 large copies and fills of 12' "$work/err" || failed "--report: $(cat "$work/err")"
expect 0 'nothing to gain' --transparent --report -- "$copies" 3 1 small
expect 0 'nothing to gain' --transparent --report -- true

# ---- the document
run_json() { expect 0 '' --transparent --json "$work/d.json" -- "$@"; }
mib=$((1 << 20))
run_json "$copies" 3 4
expect_json "d['exit_status'] == 0 and d['command'][1:] == ['3', '4'] and d['wall_s'] > 0"
expect_json "len(d['processes']) == 1 and d['processes'][0]['program'].endswith('/transparent_copies')"
expect_json "total('calls', d['processes']) == 3 and total('bytes', d['processes']) == 12 * $mib"
expect_json "total('ns', d['processes']) > 0 and set(d['processes'][0]['refusals']) == {'handled_faults', 'not_calm', 'no_mover', 'no_userfault', 'not_private', 'not_writable'}"
expect_json "all(kind['from_bytes'] == 2 * $mib for site in d['processes'][0]['sites'] for kind in site['kinds'])"
"$haul" explain --transparent "$work/d.json" > "$work/out" 2> "$work/err" || failed "explain: $(cat "$work/err")"
grep -Eq '(missing|there) +2 MiB +[0-9]+ .*(caller|together|libc)' "$work/out" || failed "explain: $(cat "$work/out")"
for wrong in 1 /nonexistent "$copies" ''; do
  ! "$haul" explain --transparent "$wrong" > "$work/out" 2> "$work/err" || failed "explain of '$wrong' succeeds"
  [ "$(wc -l < "$work/err")" = 1 ] || failed "explain of '$wrong': $(cat "$work/err")"
done
run_json "$copies" 2 4 fork
expect_json "total('calls', d['processes']) == 4 and total('bytes', d['processes']) == 16 * $mib"
run_json "$copies" 2 4 exec
expect_json "len(d['processes']) == 2 and all(total('bytes', [process]) == 8 * $mib for process in d['processes'])"
expect_json "len({process['pid'] for process in d['processes']}) == 1"
run_json bash -c "'$copies' 1 2; '$copies' 1 3; true"
expect_json "len(d['processes']) == 2 and total('bytes', d['processes']) == 5 * $mib"
HAUL_TRANSPARENT_PLAN=caller run_json "$copies" 5 2
expect_json "all(kind['ways'][way]['calls'] == 0 for p in d['processes'] for s in p['sites'] for kind in s['kinds'] for way in ('libc', 'together'))"
HAUL_TRANSPARENT_PLAN=protected run_json "$copies" 5 4
expect_json "sum(kind['ways']['protected']['calls'] for p in d['processes'] for s in p['sites'] for kind in s['kinds']) > 0 or sum(d['processes'][0]['refusals'].values()) > 0"
expect_json "total('calls', d['processes']) == 5"
HAUL_TRANSPARENT_FROM_BYTES=4M run_json "$copies" 5 2
expect_json "total('calls', d['processes']) == 0"
timeout 60 "$haul" run --transparent --json - -- "$copies" 1 2 > "$work/out" 2> "$work/err"
sed 1d "$work/out" > "$work/d.json"
expect_json "total('calls', d['processes']) == 1"
# A starter may pass a blocked signal on.
if command -v python3 > /dev/null; then
  HAUL_TRANSPARENT_PLAN=together run_json python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGCHLD])
os.execvp(sys.argv[1], sys.argv[1:])' "$copies" 5 4
  expect_json "sum(kind['ways']['together']['calls'] for p in d['processes'] for s in p['sites'] for kind in s['kinds']) > 0 or d['processes'][0]['refusals']['no_mover'] > 0"
fi
# A name that is no UTF-8, and a path of which the table has room for the end.
deep=$work/$(printf 'd%.0s' {1..60})/$(printf '\303\251%.0s' {1..60})
mkdir -p "$deep"
cp "$copies" "$deep/$(printf 'caf\351')"
run_json "$deep/$(printf 'caf\351')" 1 2
expect_json "len(d['processes']) == 1 and d['processes'][0]['sites'][0]['module'].endswith('/caf\\ufffd')"
# A process that must not write files has no table in one, and lives.
run_json bash -c "ulimit -f 0; '$copies' 1 2 > /dev/null"
expect_json "d['exit_status'] == 0"

# ---- haul profile
profile() { timeout 60 "$haul" profile "$@" > "$work/out" 2> "$work/err"; }
profile --json "$work/d.json" -- "$copies" 3 4 exit 7
status=$?
[ $status = 7 ] || failed "haul profile: exit status $status: $(cat "$work/err")"
[ "$(cat "$work/out")" = copied ] || failed "haul profile: standard output is not the program's: $(cat "$work/out")"
grep -q 'Copies and fills of 32 KiB and more: 3 calls of 12' "$work/err" || failed "haul profile: $(cat "$work/err")"
grep -Eq 'would (spare|not help)' "$work/err" || failed "haul profile judges nothing: $(cat "$work/err")"
expect_json "sum(site['calls'] for site in d['sites']) == 3 and sum(site['bytes'] for site in d['sites']) == 12 * $mib"
expect_json "any(kind['destination'] == 'new' for site in d['sites'] for kind in site['kinds'])"
# How far the first use and the first write are; told where the user may have a userfaultfd (Linux 6.8).
expect_json "all(set(d) == {'from_bytes', 'first_use', 'source_write'} and len(d['first_use']['within']) == 6 for site in d['sites'] for d in site['distances'])"
sampled="sum(i['calls'] for site in d['sites'] for x in site['distances'] for i in x['first_use']['within'] + [{'calls': x['first_use']['later'] + x['first_use']['never']}])"
if [ "$(id -u)" = 0 ]; then expect_json "$sampled > 0"; fi
profile --sample 0 --json "$work/d.json" -- "$copies" 3 4
expect_json "$sampled == 0"
profile --sample x -- true
[ $? = 2 ] && grep -q -- --sample "$work/err" || failed "haul profile --sample x: $(cat "$work/err")"
profile -- true
grep -q 'would not help' "$work/err" || failed "haul profile of nothing: $(cat "$work/err")"
profile
[ $? = 2 ] && grep -q 'name a command' "$work/err" || failed "haul profile without a command: $(cat "$work/err")"
profile --from 1K -- true
[ $? = 2 ] && grep -q '32K or more' "$work/err" || failed "haul profile --from 1K: $(cat "$work/err")"

# ---- signals: SIGTERM to the command reaches the program, and there is a report all the same
"$haul" run --transparent --report --json "$work/d.json" -- "$copies" 2 2 wait "$work/ready" > "$work/out" 2> "$work/err" &
running=$!
for ((turn = 0; turn < 600; ++turn)); do
  [ ! -e "$work/ready" ] || break
  sleep 0.1
done
[ -e "$work/ready" ] || failed "the program did not come to wait: $(cat "$work/err")"
child=$(cat "/proc/$running/task/$running/children")
kill -TERM "$running"
wait "$running"
status=$?
running=''
[ $status = 143 ] || failed "SIGTERM: exit status $status: $(cat "$work/err")"
if [ -z "$child" ] || kill -0 $child 2> /dev/null; then failed "SIGTERM: the program '$child' goes on"; fi
grep -q '2 large copies' "$work/err" || failed "SIGTERM: no report: $(cat "$work/err")"
expect_json "d['exit_status'] == 143 and total('bytes', d['processes']) == 4 * $mib"

[ -z "$(ls -A "$work/tmp")" ] || failed "something is left: $(ls -A "$work/tmp")"
[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
