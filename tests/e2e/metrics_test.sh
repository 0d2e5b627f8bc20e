#!/bin/bash
# The figures for Prometheus: haul serve --metrics and haul top --metrics, read, counted and attacked.
set -u
. "$(dirname "$0")/lib_cli.sh"
if ! command -v python3 > /dev/null; then
  echo "skipped: python3 is missing; install it"
  exit 77
fi
unset HAUL_SERVICE_WEIGHT HAUL_SERVICE_MAP_BYTES HAUL_MOVER_CPU LISTEN_PID LISTEN_FDS NOTIFY_SOCKET JOURNAL_STREAM

# ---- wrong arguments
for address in 0.0.0.0:9100 :9100 9100 localhost:9100 192.168.1.1:9100 '[::]:9100' 127.0.0.2:9100 http://127.0.0.1:1 ''; do
  expect_status 2 'served to this machine alone' serve --metrics "$address"
done
expect_status 2 'no port' serve --metrics 127.0.0.1:65536
expect_status 2 'no port' serve --metrics 127.0.0.1:http
expect_status 2 'no port' serve --metrics 127.0.0.1:80:9100
expect_status 2 'no port' serve --metrics '[::1]:x:9100'
expect_status 2 'a path is missing' serve --metrics unix:
expect_status 2 'too long' serve --metrics "unix:$work/$(printf 'x%.0s' $(seq 120))"
expect_status 2 'excludes' serve --status --metrics 127.0.0.1:0
expect_status 2 'excludes' top --metrics - --count 3
expect_status 2 'excludes' top --metrics - --interval 3
expect_status 2 'a path is missing' top --metrics ''
export HAUL_SERVICE_SOCKET=$work/none.sock
expect_status 1 'cannot write' top --metrics /proc/nonexistent/x.prom
expect_status 1 'cannot listen at' serve --metrics "unix:$work/no/such/directory/page.sock"
expect_status 0 'haul_service_up 0' top --metrics -
[ ! -e "$work/none.sock" ] || failed 'a start that failed leaves its socket'

mkdir "$work/python"
python3 "$(dirname "$0")/metrics_test.py" "$haul" "$E2E_PROGRAMS/e2e_metrics_copies" "$work/python" ||
  failed 'metrics_test.py'

[ $failures = 0 ] && echo 'all passed'
exit $((failures != 0))
