# What the tests of haul serve share. Sourced behind lib_cli.sh: services that the test leaves are ended.
chmod 755 "$work"
started=() # pids of what the test has started
cleanup() {
  for pid in "${started[@]}"; do
    # Ours still, and not another process that has got its number.
    grep -qF "$work" "/proc/$pid/environ" 2> /dev/null && kill -KILL "$pid"
  done
  for socket in "$work"/*.sock "$work"/*/*.sock; do
    [ -S "$socket" ] && timeout 20 "$haul" serve --stop --socket "$socket" > /dev/null 2>&1
  done
  rm -rf "$work"
}
trap cleanup EXIT
export HAUL_SERVICE_USE=auto
unset HAUL_SERVICE_WEIGHT HAUL_SERVICE_MAP_BYTES HAUL_MOVER_CPU LISTEN_PID LISTEN_FDS NOTIFY_SOCKET WATCHDOG_USEC
unset WATCHDOG_PID JOURNAL_STREAM

# Each part has a socket of its own.
part=0
new_place() {
  part=$((part + 1))
  mkdir -m 700 "$work/$part"
  export HAUL_SERVICE_SOCKET=$work/$part/service.sock
}

# The pid of the service that answers.
service_pid() {
  "$haul" serve --status 2> /dev/null | sed -n 's/^service .*process \([0-9]*\),.*/\1/p'
}

# Waits until a command succeeds, 10 s at most.
until_true() {
  for _ in $(seq 200); do
    "$@" > /dev/null 2>&1 && return 0
    sleep 0.05
  done
  return 1
}
# Gone, or ended and not yet reaped by init.
is_gone() { ! kill -0 "$1" 2> /dev/null || grep -q '^State:.Z' "/proc/$1/status" 2> /dev/null; }
runs() { "$haul" serve --status; }

start_daemon() {
  expect_status 0 'serving at' serve --daemon "$@"
  pid=$(service_pid)
  [ -n "$pid" ] && started+=("$pid")
  [ -n "$pid" ] || failed "no pid of the service that --daemon has started"
}
