# Process 1 of the guest: a card whose cable returns to it, and the steps that run.py asks for (/haul/steps.sh).
# Lines that begin with "HAUL: " are run.py's: step NAME, end STATUS, error CAUSE, done.
export LD_LIBRARY_PATH=/haul/lib HOME=/tmp GTEST_COLOR=no
card=eth0
place=0000:00:03.0

# The card's frames are of `mtu` bytes from now on, and its link is up.
frames_of() {
  ip link set dev $card down && ip link set dev $card mtu "$1" && ip link set dev $card arp off up ||
    fail "the card takes no frames of $1 bytes"
  tries=0
  until [ "$(cat /sys/class/net/$card/carrier)" = 1 ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the card's link does not come up"
    usleep 50000
  done
}

# The card's driver is this one from now on.
card_to() {
  if [ -e /sys/bus/pci/devices/$place/driver ]; then echo $place > /sys/bus/pci/devices/$place/driver/unbind; fi
  echo "$1" > /sys/bus/pci/devices/$place/driver_override
  echo $place > /sys/bus/pci/drivers_probe
}
# Programs may drive it themselves, and then the kernel has it back.
card_to_programs() {
  card_to vfio-pci
  [ -e /sys/bus/pci/drivers/vfio-pci/$place ] || fail "the card cannot be handed to programs"
}
card_to_kernel() {
  card_to ""
  [ ! -e /sys/bus/pci/drivers/vfio-pci/$place ] || fail "the kernel does not get the card back"
}

# step NAME COMMAND...
step() {
  echo "HAUL: step $1"
  shift
  status=0
  "$@" < /dev/null 2>&1 || status=$?
  echo "HAUL: end $status"
}

# The same for a table of figures, as for a pipe. (QEMU's card is deaf for a second after it has been told to take in all
# frames; a thread that waits for it would count all that while.)
figure() {
  if [ -d /sys/class/net/$card ]; then ip link set dev $card promisc on && sleep 2; fi
  name=$1
  shift
  step "$name" sh -c '"$@" 2>&1 | cat' sh "$@"
}

[ -d /sys/class/net/$card ] || fail "no network card came up"
echo 1 > /proc/sys/net/ipv6/conf/$card/disable_ipv6
ip link set dev lo up
. /haul/steps.sh
echo "HAUL: done"
poweroff -f
