#!/bin/bash
# haul atomic and haul lock from outside: a window served, operated on, attached; a lock held by commands, lost by
# one that is killed.
set -u
[ -n "${E2E_HAUL:-}" ] && [ -x "$E2E_HAUL" ] || { echo "skipped: this build has no command haul"; exit 77; }
haul=$E2E_HAUL
work=$(mktemp -d)
server=''
cleanup() {
  [ -z "$server" ] || kill "$server" 2> /dev/null
  wait
  rm -rf "$work"
}
trap cleanup EXIT
failures=0
failed() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}

# expect STATUS OUTPUT ARGUMENTS...: exit status, and what is said holds OUTPUT.
expect() {
  local status=$1 text=$2 found
  shift 2
  timeout 60 "$haul" "$@" > "$work/out" 2>&1
  found=$?
  [ $found = "$status" ] || failed "haul $*: exit status $found instead of $status: $(cat "$work/out")"
  grep -qF -- "$text" "$work/out" || failed "haul $*: says '$(cat "$work/out")', not '$text'"
}

"$haul" atomic serve --responder spin:127.0.0.1 > "$work/name" 2> "$work/served" &
server=$!
for _ in $(seq 100); do [ -s "$work/name" ] && break; sleep 0.1; done
name=$(cat "$work/name")
[[ $name == haul:127.0.0.1:* ]] || failed "the server says '$name' ($(cat "$work/served"))"

# ---- words
expect 0 0 atomic add "$name" 5
expect 0 5 atomic add "$name" -1
expect 0 4 atomic swap "$name" 0x10
expect 0 16 atomic cas "$name" 7 --compare 4
expect 0 16 atomic cas "$name" 7 --compare 16
expect 0 7 atomic or "$name" 8
expect 0 15 atomic and "$name" 3
expect 0 3 atomic xor "$name" 1
expect 0 2 atomic attach "$name"
expect 0 0 atomic write "$name" 9 --offset 16 --width 4
expect 0 9 atomic read "$name" --offset 16
expect 0 9 atomic swap "$name" -2 --offset 16 --width 4
expect 0 4294967294 atomic attach "$name" --offset 16 --width 4
expect 0 'served operations' atomic stats "$name"
"$haul" atomic stats "$name" --json - | grep -q '"served operations": [1-9]' || failed "stats --json counts nothing"

# ---- wrong ones
expect 1 'outside the window' atomic read "$name" --offset 4096
expect 1 'not aligned' atomic read "$name" --offset 1
expect 1 'knows no such window' atomic read "${name%?}$(printf %x $((15 - 0x${name: -1})))"
expect 2 'is no name of a window' atomic read nonsense
expect 2 'needs the name of a window' atomic read
expect 2 'needs a value' atomic add "$name"
expect 2 'is no number of 64 bits' atomic add "$name" many
expect 2 'does not fit' atomic add "$name" 0x1ffffffff --width 4
expect 2 'takes no value' atomic read "$name" 9
expect 2 'takes no --compare' atomic swap "$name" 3 --compare 9
expect 2 'takes no --bytes' atomic read "$name" --bytes 8K
expect 2 'takes no window' atomic serve "$name"
expect 2 'is not 4 or 8' atomic read "$name" --width 3
expect 1 'is no responder' atomic serve --responder fast
expect 1 'no interface' atomic serve --responder xdp:nowhere0
expect 1 'no process of this host' atomic attach haul:127.0.0.1:1/0/1000+1000#1

# ---- a lock, in another part of the window
lock() { "$haul" lock "$1" "$name" --offset 256 --node block:127.0.0.1 "${@:2}"; }
echo 0 > "$work/count"
for _ in 1 2 3; do
  lock hold -- sh -c "n=\$(cat $work/count); sleep 0.2; echo \$((n + 1)) > $work/count" &
  holders="${holders:-} $!"
done
for pid in $holders; do wait "$pid" || failed "a holder fails"; done
[ "$(cat "$work/count")" = 3 ] || failed "three holders count to $(cat "$work/count")"
lock hold -- sh -c 'exit 7'
[ $? = 7 ] || failed "lock hold does not end as its command does"
first=$(lock hold -- sh -c 'echo $HAUL_LOCK_TOKEN') second=$(lock hold -- sh -c 'echo $HAUL_LOCK_TOKEN')
[ "$first" -lt "$second" ] || failed "tokens do not grow: $first, $second"

"$haul" lock hold "$name" --offset 256 --node block:127.0.0.1 -- sleep 60 &
holder=$!
for _ in $(seq 100); do lock hold --try -- true > "$work/out" 2>&1 || break; sleep 0.05; done
grep -q 'the lock is held' "$work/out" || failed "a held lock is not: $(cat "$work/out")"
lock hold --timeout 0.2 -- true > "$work/out" 2>&1 && failed "a held lock was had"
kill -KILL "$holder"
lock hold --timeout 30 -- true || failed "a killed holder keeps the lock"

# ---- signals: a waiter leaves, and runs nothing; a holder's command gets them
"$haul" lock hold "$name" --offset 256 --node block:127.0.0.1 -- sh -c "echo > $work/held; exec sleep 60" &
holder=$!
for _ in $(seq 100); do [ -s "$work/held" ] && break; sleep 0.1; done
for signal in TERM HUP INT; do
  env --default-signal timeout --signal $signal 0.5 \
    "$haul" lock hold "$name" --offset 256 --node block:127.0.0.1 -- touch "$work/ran" 2> "$work/out"
  [ $? = 124 ] || failed "a waiter does not end by SIG$signal: $(cat "$work/out")"
done
"$haul" lock hold "$name" --offset 256 --node block:127.0.0.1 -- touch "$work/ran" &
waiter=$!
sleep 0.5
kill -INT "$waiter" # which a shell has programs in the background ignore
sleep 0.2
kill -TERM "$waiter"
wait "$waiter"
[ $? = 143 ] || failed "a waiter does not end as SIGTERM has it"
kill -TERM "$holder"
wait "$holder"
[ $? = 143 ] || failed "a holder does not end as its command does by SIGTERM"
[ ! -e "$work/ran" ] || failed "a waiter that was ended runs its command"
lock hold --try -- true || failed "whoever was ended keeps the lock"
# The command has the signals that the caller has.
blocked=$(grep SigBlk /proc/self/status)
[ "$(lock hold -- grep SigBlk /proc/self/status)" = "$blocked" ] || failed "the command has signals blocked"

# ---- a home that is silent
kill -STOP "$server"
# (Its threads hear of that one after the other, and one of them serves.)
goes_on() { grep -qs '^State:[[:space:]]*[^T[:space:]]' /proc/"$server"/task/*/status; }
for _ in $(seq 1000); do goes_on || break; sleep 0.01; done
SECONDS=0
expect 1 'no answer' lock hold "$name" --offset 256 --node block:127.0.0.1 --timeout 0.2 -- true
[ $SECONDS -lt 4 ] || failed "a silent home is waited for $SECONDS s instead of --timeout"
kill -CONT "$server"

expect 2 'behind --' lock hold "$name"
expect 2 'takes no --seconds' lock hold "$name" --seconds 1 -- true
expect 2 'takes no --timeout' lock hold "$name" --try --timeout 1 -- true
expect 2 'takes no --try' lock bench "$name" --try
expect 2 'runs no command' lock bench "$name" -- true
expect 0 'fabric:PROVIDER' lock --help
expect 2 'no room for a lock' lock hold "$name" --offset 4088 -- true
expect 0 'acquisitions' lock bench "$name" --offset 256 --node block:127.0.0.1 --seconds 0.2

kill -TERM "$server"
wait "$server" || failed "the server does not end well"
grep -q 'served packets' "$work/served" || failed "the server does not tell what it served"
[ "$(wc -l < "$work/name")" = 1 ] || failed "the server says more than its name: $(cat "$work/name")"
server=''
expect 1 'no answer' atomic read "$name"
[ $failures = 0 ] && echo "all well"
exit $((failures > 0))
