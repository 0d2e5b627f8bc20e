#!/bin/sh
# Makes what a guest boots from, out of Debian packages, in a directory:
#   vmlinuz, initrd (busybox and the virtio modules), root.ext4 (read-only root file system),
#   versions (the packages in it).
#
# Usage: make_guest.sh [DIRECTORY]    default: ${XDG_CACHE_HOME:-~/.cache}/haul/sim
#
# Nothing here needs root: mke2fs fills the image itself. What is there and was made by scripts of these words is left
# alone.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
shared=$here/../../../scripts/guests
target=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/haul/sim}
stamp=$(cat "$here/make_guest.sh" "$here/next" "$shared/make.sh" "$shared/init" | sha256sum | cut -d ' ' -f 1)
. "$shared/make.sh"

begin_guest mke2fs e2fsprogs
unpack_packages linux-image-cloud-amd64,apache2-bin,apache2-utils,iperf3,fio,busybox-static,iproute2
make_initrd "$shared/init" "$here/next" virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci \
  virtio_blk failover net_failover virtio_net

say "making the root file system"
{
  for package in apache2-bin apache2-utils iperf3 fio; do
    # A package's changelog begins "NAME (VERSION) ..."; some share another package's.
    zcat "$work/root/usr/share/doc/$package"/changelog*.gz 2> /dev/null | sed -n "1s/.*(\(.*\)).*/$package=\1/p"
  done
} >> "$work/out/versions"
root=$work/root
rm -rf "$root/boot" "$root/lib/modules" "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" \
  "$root/usr/share/perl" "$root/usr/lib/x86_64-linux-gnu/perl" "$root/var/cache" "$root/var/lib/apt"
mkdir -p "$root/dev" "$root/proc" "$root/sys" "$root/run" "$root/tmp" "$root/mnt" "$root/etc" "$root/srv/www"
printf 'root:x:0:0:root:/:/bin/sh\nwww:x:33:33:www:/srv/www:/bin/false\n' > "$root/etc/passwd"
printf 'root:x:0:\nwww:x:33:\n' > "$root/etc/group"
printf '127.0.0.1 localhost\n10.0.0.1 sender\n10.0.0.2 receiver\n' > "$root/etc/hosts"
# What apache serves: lines of text, sizes in KiB.
for size in 4 16 64; do
  yes 'The quick brown fox jumps over the lazy dog; 0123456789.' | head -c $((size * 1024)) \
    > "$root/srv/www/$size.txt"
done
head -c 10701 "$root/srv/www/16.txt" > "$root/srv/www/index.html"  # as large as Debian's default page
mke2fs -q -t ext4 -L root -E root_owner=0:0 -O ^has_journal -m 0 -d "$root" "$work/out/root.ext4" 512m \
  > "$work/log" 2>&1 || {
  tail -n 1 "$work/log" >&2
  die "the root file system could not be made in $target; its cause is above: is the disk full?"
}

end_guest
