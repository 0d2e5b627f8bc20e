# apache serves pages of several sizes to ab on the other machine.
run_sender() {
  setup_network 10.0.0.1
  apache2 -f /run/haul/httpd.conf || fail "apache does not start"
  await_receiver 4712
  mark
  sleep 100000
}
run_receiver() {
  setup_network 10.0.0.2
  tries=0
  until wget -q -O /dev/null http://10.0.0.1/4.txt; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "apache does not answer"
    usleep 100000
  done
  for page in 4.txt index.html 16.txt 64.txt; do
    ab -q -c 4 -n 1000000 -s 3600 "http://10.0.0.1/$page" > "/tmp/ab.$page" 2>&1 &
  done
  sleep 1
  pidof ab > /dev/null || { cat /tmp/ab.*; fail "ab ended early"; }
  tell_sender 4712
  mark
  wait
  cat /tmp/ab.*
}
