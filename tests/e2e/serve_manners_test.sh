#!/bin/bash
# haul serve among its supervisors: its log and its rotation, the journal, readiness and watchdog, the units.
set -u
. "$(dirname "$0")/lib_cli.sh"
. "$(dirname "$0")/lib_serve.sh"
source=$(cd "$(dirname "$0")/../.." && pwd)
log=$work/logs/serve.log
mkdir "$work/logs"

# expect_lines FILE PATTERN: it has lines, and each matches.
expect_lines() {
  [ -s "$1" ] || failed "$1 is empty"
  if grep -qvE "$2" "$1"; then failed "$1 has other lines than $2: $(cat "$1")"; fi
}

# ---- a log
new_place
expect_status 2 'a path is missing' serve --log ''
expect_status 2 'excludes' serve --status --log "$log"
expect_status 2 'excludes' serve --reopen-log --stop
expect_status 1 'cannot write' serve --log /proc/nonexistent/x.log
expect_status 1 'cannot write' serve --daemon --log /proc/nonexistent/x.log
expect_status 1 'start one with' serve --reopen-log
line='^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[+-][0-9]{4} haul\[[0-9]+\]: '
cd "$work/logs" || exit 1
start_daemon --log serve.log --metrics unix:page.sock
cd - > /dev/null || exit 1
until_true test -s "$log" || failed 'no log below the directory of the start'
[ "$(stat -c %a "$log")" = 600 ] || failed 'others may read the log'
expect_lines "$log" "$line"
grep -q "haul\[$pid\]: figures at unix:$work/logs/page.sock" "$log" || failed "no line of the page: $(cat "$log")"
# rotation: what comes later is in the new file, all of it
for how in signal command; do
  mv "$log" "$log.$how"
  if [ $how = signal ]; then kill -HUP "$pid"; else expect_status 0 "process $pid" serve --reopen-log; fi
  until_true test -e "$log" || failed "the log is not opened again by $how"
  [ "$(readlink "/proc/$pid/fd/2")" = "$log" ] || failed "standard error is $(readlink "/proc/$pid/fd/2")"
  ! ls -l "/proc/$pid/fd" | grep -q "serve.log.$how" || failed 'it holds the old file'
done
# no new file can be made: it goes on in the old one, and says so there
mv "$work/logs" "$work/away"
kill -HUP "$pid"
until_true grep -q 'cannot open .* again' "$work/away/serve.log" || failed "the old log says: $(cat "$work/away/serve.log")"
mv "$work/away" "$work/logs"
expect_status 0 'stopped' serve --stop
grep -q 'asked to stop' "$log" || failed 'the log lacks the last line'
expect_lines "$log" "$line"
[ ! -e "$work/logs/page.sock" ] || failed 'a stopped daemon leaves its page'
# what is there already stays; without a log SIGHUP is nothing (serve_test.sh)
lines=$(wc -l < "$log")
start_daemon --log "$log"
expect_status 0 'stopped' serve --stop
[ "$(wc -l < "$log")" -gt "$lines" ] || failed 'it writes its log anew'
# a start that fails says so where it was started, not in the log
new_place
echo precious > "$HAUL_SERVICE_SOCKET"
expect_status 1 'another file' serve --log "$work/other.log"
rm "$HAUL_SERVICE_SOCKET"

# ---- logrotate's own hand on the example
if command -v logrotate > /dev/null; then
  start_daemon --log "$log"
  sed -e "s|/home/USER/[^ ]*serve.log|$log|" -e "s|^ *haul serve|$haul serve|" \
    "$source/systemd/haul.logrotate" > "$work/rotate"
  rm -f "$log".*
  logrotate --force --state "$work/rotate.state" "$work/rotate" > "$work/out" 2>&1 || failed "logrotate: $(cat "$work/out")"
  zcat "$log.1.gz" | grep -q listening || failed "logrotate has kept no old log: $(ls "$work/logs")"
  until_true test -e "$log" || failed 'after logrotate there is no log'
  expect_status 0 'stopped' serve --stop
  grep -q 'asked to stop' "$log" || failed 'after logrotate lines go elsewhere'
else
  echo "not tested: logrotate, which is missing (package logrotate)"
fi

# ---- the journal: levels, no times
new_place
: > "$work/journal"
export JOURNAL_STREAM=$(stat -c %d:%i "$work/journal")
"$haul" serve 2>> "$work/journal" &
pid=$!
started+=("$pid")
until_true runs || failed "haul serve does not answer: $(cat "$work/journal")"
expect_status 0 'stopped' serve --stop
wait "$pid"
"$haul" serve --cpu 60000 2>> "$work/journal"
expect_lines "$work/journal" '^<[36]>haul: '
[ "$(grep -c '^<3>haul: .*CPU 60000' "$work/journal")" = 1 ] || failed "no failure of level 3: $(cat "$work/journal")"
grep -q '^<6>haul: listening' "$work/journal" || failed "no line of level 6: $(cat "$work/journal")"
# a stream of somebody else's journal is none
"$haul" serve --cpu 60000 2> "$work/err"
expect_lines "$work/err" '^haul: '
unset JOURNAL_STREAM

# ---- readiness, watchdog, end
new_place
if command -v python3 > /dev/null; then
  cat > "$work/manager.py" << 'EOF'
import atexit, os, signal, socket, subprocess, sys, time
haul, place, name = sys.argv[1:]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("\0" + name[1:] if name[0] == "@" else name)
manager.settimeout(20)
service = subprocess.Popen([haul, "serve"], env=dict(os.environ, NOTIFY_SOCKET=name, WATCHDOG_USEC="400000"))
atexit.register(service.kill)
def heard():
    return manager.recv(100).decode().strip()
assert heard() == "READY=1"
assert subprocess.run([haul, "serve", "--status"]).returncode == 0  # ready means that it answers
began = time.time()
assert [heard() for _ in range(6)] == ["WATCHDOG=1"] * 6
assert 0.8 < time.time() - began < 20, f"six answers in {time.time() - began} s"
service.send_signal(signal.SIGSTOP)
time.sleep(1)
manager.settimeout(0.5)
said = []
try:
    while True: said.append(heard())
except TimeoutError:
    pass
assert len(said) <= 1, f"a stopped service says {said}"
manager.settimeout(20)
service.send_signal(signal.SIGCONT)
assert heard() == "WATCHDOG=1"
service.terminate()
while (last := heard()) == "WATCHDOG=1": pass
assert last == "STOPPING=1", last
assert service.wait(20) == 0
EOF
  for name in "$work/notify" "@haul-notify-test-$$"; do
    timeout 100 python3 "$work/manager.py" "$haul" "$work" "$name" > "$work/out" 2>&1 ||
      failed "what systemd hears at $name: $(tail -3 "$work/out")"
  done
else
  echo "not tested: sd_notify, for python3 is missing"
fi
# nobody listens there, or the name is none: it goes on
for name in "$work/nobody" /proc/nonexistent relative "/$(printf 'x%.0s' $(seq 200))"; do
  NOTIFY_SOCKET=$name start_daemon
  expect_status 0 'stopped' serve --stop
done

# ---- the units
if command -v systemd-analyze > /dev/null; then
  mkdir "$work/units"
  cp "$source/systemd/haul.socket" "$work/units"
  sed "s|@bindir@|$(dirname "$haul")|" "$source/systemd/haul.service" > "$work/units/haul.service"
  XDG_RUNTIME_DIR=$work systemd-analyze --user --man=no verify "$work/units/haul.service" "$work/units/haul.socket" \
    > "$work/out" 2>&1 || failed "systemd-analyze verify: $(cat "$work/out")"
  if grep -E 'haul\.(service|socket)' "$work/out"; then failed 'systemd-analyze finds something in the units'; fi
else
  echo "not tested: the units, for systemd-analyze is missing (package systemd)"
fi

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
