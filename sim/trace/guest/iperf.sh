# TCP from one machine to the other through a window of 264 KB, as the paper has it.
run_receiver() {
  setup_network 10.0.0.2
  iperf3 -s -D -I /tmp/iperf.pid || fail "the server of iperf3 does not start"
  tell_sender 4711
  sleep 1
  tell_sender 4712
  mark
  sleep 100000
}
run_sender() {
  setup_network 10.0.0.1
  await_receiver 4711
  iperf3 -c 10.0.0.2 -w 264K -t 86400 -i 0 > /tmp/iperf.log 2>&1 &
  iperf=$!
  await_receiver 4712
  mark
  wait $iperf
  cat /tmp/iperf.log
}
