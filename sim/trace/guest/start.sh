# Process 1 of a guest: sets the machine up, hands the kernel's symbols to the host, runs the workload.
# The kernel's command line says which: haul.workload=NAME haul.role=ROLE.
#
# What begins with "HAUL: " on the console is for the recorder: "HAUL: error CAUSE" ends the recording.
export PATH=/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
/bin/busybox mkdir -p /run/bin
/bin/busybox --install -s /run/bin
rm -f /run/bin/ip  # iproute2's knows rto_min

fail() { echo "HAUL: error $*"; sleep 1; poweroff -f; }
say() { echo "HAUL: $*"; }

for word in $(cat /proc/cmdline); do
  case $word in
    haul.workload=*) workload=${word#*=} ;;
    haul.role=*) role=${word#*=} ;;
  esac
done
mkdir -p /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
hostname "$role"
ip link set lo up

# The second disk takes the symbols, behind their number of bytes in the first block.
cat /proc/kallsyms > /tmp/kallsyms
dd if=/tmp/kallsyms of=/dev/vdb bs=1M seek=1 conv=fsync 2> /dev/null || fail "the symbols' disk is too small"
wc -c < /tmp/kallsyms | dd of=/dev/vdb bs=512 count=1 conv=fsync,notrunc 2> /dev/null
rm /tmp/kallsyms
say "symbols"

# The machines are far slower than their clocks say while they are recorded: TCP must not take a peer
# that computes for a link that loses packets.
setup_network() {
  ip link set eth0 up || fail "no network device came up"
  ip address add "$1/24" dev eth0
  ip route replace 10.0.0.0/24 dev eth0 rto_min 20s
  sysctl -q -w net.ipv4.tcp_early_retrans=0
}
# Signals by TCP: the receiver tells the sender, as soon as that one hears it.
tell_sender() {
  tries=0
  until nc -w 5 10.0.0.1 "$1" < /dev/null > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the sender does not listen on port $1"
    usleep 100000
  done
}
await_receiver() { nc -l -p "$1" < /dev/null > /dev/null; }
# The load runs: the tracer may begin. The receiver tells the sender, so that both begin together.
mark() { /run/haul/mark; }

. "/run/haul/$workload.sh"
run_"$role" || fail "the workload $workload ended as $role"
# A workload that ends before the recorder has what it wants.
fail "the workload $workload came to its end; record fewer instructions"
