#!/bin/bash
# haul serve and haul top from outside: start in three ways, questions, ends, and what goes wrong.
set -u
. "$(dirname "$0")/lib_cli.sh"
. "$(dirname "$0")/lib_serve.sh"

# ---- wrong arguments
new_place
expect_status 2 'excludes' serve --status --stop
expect_status 2 'excludes' serve --stats --status
expect_status 2 'excludes' serve --stop --daemon
expect_status 2 'excludes' serve --status --idle-exit 3
expect_status 2 '--stats' serve --json "$work/x.json"
expect_status 2 '--idle-exit' serve --idle-exit -1
expect_status 2 '--idle-exit' serve --idle-exit 0x10
expect_status 2 '--map-bytes' serve --map-bytes banana
expect_status 2 '--map-bytes' serve --map-bytes 9999999G
expect_status 2 '--cpu' serve --cpu first
expect_status 2 '--socket' serve --socket ''
expect_status 2 'nonsense' serve nonsense
expect_status 2 '--interval' top --interval 0
expect_status 2 '--interval' top --interval soon
expect_status 2 '--count' top --count few
expect_status 1 'CPU 60000' serve --cpu 60000
expect_status 1 'cannot make the directory' serve --socket "$work/no/such/place/s.sock"
expect_status 1 'too long' serve --socket "$work/$(printf 'x%.0s' $(seq 120))"
expect_status 1 'too long' serve --daemon --socket "$work/$(printf 'x%.0s' $(seq 120))"

# ---- none runs
expect_status 1 'start one with `haul serve`' serve --status
expect_status 1 'start one with `haul serve`' serve --stats
expect_status 1 'nothing to stop' serve --stop
expect_status 0 'start one with `haul serve`' info

# ---- in the foreground: log lines, a second one, SIGHUP, SIGTERM
"$haul" serve 2> "$work/log" &
pid=$!
started+=("$pid")
until_true runs || failed "haul serve does not answer: $(cat "$work/log")"
[ "$(service_pid)" = "$pid" ] || failed "--status names process '$(service_pid)', not $pid"
expect_status 0 'socket' serve --status
grep -qF "$HAUL_SERVICE_SOCKET" "$work/out" || failed '--status does not name the socket'
[ "$(stat -c %a "$HAUL_SERVICE_SOCKET")" = 600 ] || failed 'others may connect'
expect_status 1 'runs already' serve
expect_status 1 'runs already' serve --daemon
expect_status 0 'no process uses' serve --stats
expect_status 0 'process '"$pid" info
expect_status 0 '"running": true' info --json
expect_status 0 '"map_budget_bytes"' serve --stats --json -
if command -v python3 > /dev/null; then
  python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d["pid"] == int(sys.argv[2]) and d["clients"] == []' \
    "$work/out" "$pid" || failed '--stats --json - is not one right document'
fi
expect_status 0 'clients' serve --stats --json "$work/stats.json"
[ -s "$work/stats.json" ] || failed '--json writes no file'
expect_status 1 'cannot write' serve --stats --json /proc/nonexistent/x.json
expect_status 0 'clients 0' top --count 2 --interval 0.1
[ "$(grep -c '^haul ' "$work/out")" = 2 ] || failed "top --count 2 shows: $(cat "$work/out")"
if grep -q $'\033' "$work/out"; then failed 'top moves the cursor in a pipe'; fi
kill -HUP "$pid"
expect_status 0 'running for' serve --status
kill -TERM "$pid"
wait "$pid"
[ $? = 0 ] || failed 'SIGTERM does not end it in order'
[ ! -e "$HAUL_SERVICE_SOCKET" ] || failed 'it leaves its socket behind'
[ -s "$work/log" ] || failed 'it logs nothing'
if grep -qv '^haul: ' "$work/log"; then failed "log lines without 'haul: ': $(cat "$work/log")"; fi

# ---- detached, two at once, and the end
start_daemon
[ "$(ps -o tty= -p "$pid" | tr -d ' ')" = '?' ] || failed 'the daemon has a terminal'
[ "$(readlink "/proc/$pid/fd/1")" = /dev/null ] || failed "the daemon's output is not /dev/null"
[ "$(readlink "/proc/$pid/cwd")" = / ] || failed 'the daemon keeps a directory busy'
expect_status 0 'no process uses' top --count 1 --interval 0.1
expect_status 0 'stopped' serve --stop
is_gone "$pid" || failed '--stop returns before the service is gone'
[ ! -e "$HAUL_SERVICE_SOCKET" ] || failed 'a stopped daemon leaves its socket behind'
answer=$(timeout 60 "$haul" serve --daemon) || failed 'the daemon holds the caller'"'"'s pipe'
pid=$(service_pid)
started+=("$pid")
"$haul" serve --daemon --socket "$work/$part/other.sock" > /dev/null || failed 'no second one elsewhere'
expect_status 0 'stopped' serve --stop --socket "$work/$part/other.sock"
expect_status 0 "process $pid" serve --status
# many at once: one wins, the others say so
expect_status 0 'stopped' serve --stop
for i in 1 2 3 4; do
  timeout 60 "$haul" serve --daemon > "$work/race.$i" 2>&1 &
  racers[i]=$!
done
for i in 1 2 3 4; do wait "${racers[i]}"; done
expect_status 0 'running' serve --status
pid=$(service_pid)
started+=("$pid")
expect_status 0 'stopped' serve --stop

# ---- top while it lives, and when it ends
start_daemon
timeout 60 "$haul" top --interval 0.1 > "$work/top" 2> "$work/err" &
watcher=$!
until_true test -s "$work/top" || failed 'top shows nothing'
expect_status 0 'stopped' serve --stop
wait "$watcher"
[ $? = 1 ] || failed 'top does not fail when the service ends'
grep -q 'has ended' "$work/err" || failed "top does not say that the service has ended: $(cat "$work/err")"
if command -v script > /dev/null; then
  start_daemon
  # timeout stops only the command it runs, so ^C comes as from a terminal
  TERM=xterm script -qec "timeout -s INT 1 '$haul' top --interval 0.1" /dev/null > "$work/tty" < /dev/null
  grep -q $'\033\[[0-9]*F' "$work/tty" || failed 'top does not draw in place on a terminal'
  if grep -qF $'\033[?' "$work/tty"; then failed 'top changes a mode of the terminal'; fi
  expect_status 0 'stopped' serve --stop
fi

# ---- a stopped process is an error and no hang
start_daemon
kill -STOP "$pid"
expect_status 1 "kill -CONT $pid" serve --status
expect_status 1 'does not answer' serve --stop
expect_status 1 'does not answer' serve
expect_status 0 'does not answer' info
kill -CONT "$pid"
expect_status 0 'stopped' serve --stop

# ---- killed: its socket is stale, the next one takes the place
start_daemon
kill -KILL "$pid"
until_true is_gone "$pid"
[ -e "$HAUL_SERVICE_SOCKET" ] || failed 'this test expected a stale socket'
expect_status 1 'no service runs' serve --status
start_daemon
expect_status 0 'stopped' serve --stop
# a file that is no socket is somebody's
echo precious > "$HAUL_SERVICE_SOCKET"
expect_status 1 '' serve
[ "$(cat "$HAUL_SERVICE_SOCKET")" = precious ] || failed 'it removes a file that is no socket'
rm "$HAUL_SERVICE_SOCKET"

# ---- nobody uses it: it ends by itself
start_daemon --idle-exit 1
until_true is_gone "$pid" || failed '--idle-exit does not end it'

# ---- a relative path, and the usual places
(cd "$work" && expect_status 0 "serving at $work/here.sock" serve --daemon --socket here.sock &&
  expect_status 0 'stopped' serve --stop --socket here.sock; exit $failures)
failures=$?
unset HAUL_SERVICE_SOCKET
mkdir -m 700 "$work/runtime"
export XDG_RUNTIME_DIR=$work/runtime
start_daemon
[ -S "$work/runtime/haul/service.sock" ] || failed 'it does not use XDG_RUNTIME_DIR'
[ "$(stat -c %a "$work/runtime/haul")" = 700 ] || failed 'others may enter its directory'
expect_status 0 'stopped' serve --stop
unset XDG_RUNTIME_DIR

# ---- systemd passes the socket
new_place
if command -v systemd-socket-activate > /dev/null; then
  systemd-socket-activate --seqpacket -l "$HAUL_SERVICE_SOCKET" -E HAUL_MOVER_LEASE=off \
    "$haul" serve --idle-exit 1 > "$work/log" 2>&1 &
  pid=$!
  started+=("$pid")
  until_true test -S "$HAUL_SERVICE_SOCKET"
  expect_status 0 "process $pid" serve --status
  expect_status 0 'stopped' serve --stop
  wait "$pid"
  [ $? = 0 ] || failed "activated by systemd it ends badly: $(cat "$work/log")"
  [ -S "$HAUL_SERVICE_SOCKET" ] || failed "it removes systemd's socket"
  new_place
  systemd-socket-activate -l "$HAUL_SERVICE_SOCKET" "$haul" serve > "$work/log" 2>&1 &
  pid=$!
  started+=("$pid")
  until_true test -S "$HAUL_SERVICE_SOCKET"
  if command -v python3 > /dev/null; then
    python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$HAUL_SERVICE_SOCKET"
    wait "$pid"
    [ $? = 1 ] || failed 'it serves a stream socket'
    grep -q ListenSequentialPacket "$work/log" || failed "no remedy for a stream socket: $(cat "$work/log")"
  fi
else
  echo "not tested: socket activation, for systemd-socket-activate is missing (package systemd)"
fi
# variables of somebody else's activation are none of ours
new_place
LISTEN_PID=1 LISTEN_FDS=1 "$haul" serve --daemon > /dev/null || failed 'it takes LISTEN_PID=1 for itself'
pid=$(service_pid)
started+=("$pid")
expect_status 0 'stopped' serve --stop

# ---- what a killed one leaves
new_place
start_daemon
kill -9 "$pid"
until_true is_gone "$pid"
XDG_CACHE_HOME=$work/no-cache expect_status 0 'a socket that nobody listens to' clean
[ ! -e "$HAUL_SERVICE_SOCKET" ] || failed 'haul clean leaves a dead socket'

# ---- on demand, by a program that wants it
new_place
PATH=$(dirname "$haul"):$PATH HAUL_SERVICE_USE=demand HAUL_PLAN_MOVER=auto \
  "$haul" bench bandwidth --sizes 8M --quick --memory shared > /dev/null 2>&1 || failed 'a program that wants a service fails'
pid=$(service_pid)
[ -n "$pid" ] || failed 'HAUL_SERVICE_USE=demand starts no service'
started+=("$pid")
grep -qz -- '--idle-exit' "/proc/$pid/cmdline" || failed 'a service on demand would stay for ever'
expect_status 0 'stopped' serve --stop
new_place
PATH=/nonexistent HAUL_SERVICE_USE=demand "$haul" bench bandwidth --sizes 8M --quick --memory shared \
  > /dev/null 2>&1 || failed 'where no service can be started a program does not go on without'

# ---- as an ordinary user, without XDG_RUNTIME_DIR and with root's
if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null; then
  as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all
    env -u HOME -u HAUL_SERVICE_SOCKET)
  if "${as_nobody[@]}" test -x "$haul" && [ ! -e /tmp/haul-65534 ] && [ ! -e /run/user/65534 ]; then
    mkdir -m 700 "$work/roots"
    for runtime in '' "$work/roots"; do
      # shellcheck disable=SC2086
      nobody() { "${as_nobody[@]}" ${runtime:+XDG_RUNTIME_DIR=$runtime} "$haul" "$@"; }
      nobody serve --daemon > "$work/out" 2>&1 || failed "as nobody: $(cat "$work/out")"
      grep -q '/tmp/haul-65534/service.sock' "$work/out" || failed "nobody's place: $(cat "$work/out")"
      nobody serve --status > "$work/out" 2>&1 || failed "status as nobody: $(cat "$work/out")"
      nobody serve --stop > "$work/out" 2>&1 || failed "stop as nobody: $(cat "$work/out")"
    done
    rmdir /tmp/haul-65534
    # somebody else's service at our place is refused
    new_place
    chmod 755 "$work/$part"
    start_daemon
    chmod 666 "$HAUL_SERVICE_SOCKET"
    "${as_nobody[@]}" "$haul" serve --status --socket "$HAUL_SERVICE_SOCKET" > "$work/out" 2>&1 &&
      failed "nobody may ask root's service"
    expect_status 0 'stopped' serve --stop
  else
    echo "not tested: as nobody, who may not run the command here or has a service"
  fi
fi

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
