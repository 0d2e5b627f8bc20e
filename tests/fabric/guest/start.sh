# What the guest's first program goes on with (devices/nic/guest/next).
export LD_LIBRARY_PATH=/haul/lib FI_PROVIDER_PATH=/haul/lib HOME=/tmp
ip link set dev lo up
echo "HAUL: cpus $(nproc)"
for overlap in auto off; do
  status=0
  HAUL_FABRIC_OVERLAP=$overlap /haul/bin/fabric_overlap --rounds 2 2>&1 || status=$?
  echo "HAUL: $overlap $status"
done
echo "HAUL: done"
poweroff -f
