#!/bin/sh
# Makes what a guest with an emulated network card boots from, out of Debian packages, in a directory: vmlinuz, initrd
# (busybox, the cards' drivers, and what hands a card to a program: VFIO), versions.
#
# Usage: make_guest.sh [DIRECTORY]    default: ${XDG_CACHE_HOME:-~/.cache}/haul/nic-guest
#
# Nothing here needs root. What is there and was made by scripts of these words is left alone.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
shared=$here/../../../scripts/guests
target=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/haul/nic-guest}
stamp=$(cat "$here/make_guest.sh" "$here/next" "$shared/make.sh" "$shared/init" | sha256sum | cut -d ' ' -f 1)
. "$shared/make.sh"

begin_guest
# (The kernel for clouds has no driver of a gigabit card.)
unpack_packages linux-image-amd64,busybox-static './boot/*' './bin/busybox' '*/e1000.ko' '*/e1000e.ko' \
  '*/virt/lib/irqbypass.ko' '*/drivers/vfio/*.ko'
make_initrd "$shared/init" "$here/next" e1000 e1000e irqbypass vfio vfio_virqfd vfio_iommu_type1 vfio-pci-core vfio-pci
end_guest
