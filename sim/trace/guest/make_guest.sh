#!/bin/sh
# Makes what a guest boots from, out of Debian packages, in a directory:
#   vmlinuz, initrd (busybox and the virtio modules), root.ext4 (read-only root file system),
#   versions (the packages in it).
#
# Usage: make_guest.sh [DIRECTORY]    default: ${XDG_CACHE_HOME:-~/.cache}/haul/sim
#
# Nothing here needs root: packages are unpacked, not installed (no maintainer script runs), and mke2fs
# fills the image itself. What is there and was made by a script of these words is left alone.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/haul/sim}
suite=bookworm
packages=linux-image-cloud-amd64,apache2-bin,apache2-utils,iperf3,fio,busybox-static,iproute2
# In the order in which they load.
modules="virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk
         failover net_failover virtio_net"

die() { printf '%s\n' "make_guest.sh: $*" >&2; exit 1; }
say() { if [ -t 2 ]; then printf '%s\n' "guest: $*" >&2; fi; }
need() { command -v "$1" > /dev/null || die "$1 is missing; install the package $2."; }

PATH=$PATH:/usr/sbin:/sbin
need mmdebstrap mmdebstrap
need mke2fs e2fsprogs
need cpio cpio
[ -r /usr/share/keyrings/debian-archive-keyring.gpg ] ||
  die "Debian's signing keys are missing; install the package debian-archive-keyring."

stamp=$(cat "$here/make_guest.sh" "$here/init" | sha256sum | cut -d ' ' -f 1)
if [ -f "$target/stamp" ] && [ "$(cat "$target/stamp")" = "$stamp" ]; then exit 0; fi

mkdir -p "$target" || die "$target cannot be made; name a directory where you may write."
work=$(mktemp -d "$target/.making.XXXXXX") || die "$target cannot be written; name another directory."
# What was unpacked may forbid writing to its owner.
clean() { chmod -R u+rwX "$work" 2> /dev/null || true; rm -rf "$work"; }
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say "fetching and unpacking packages of $suite (half a minute)"
TMPDIR=$work mmdebstrap --quiet --mode=chrootless --variant=extract --include="$packages" \
  "$suite" "$work/root.tar" 2> "$work/log" < /dev/null || {
  tail -n 5 "$work/log" >&2
  die "mmdebstrap could not fetch the packages; its last lines are above: check the network and its proxy."
}
mkdir "$work/root"
# Device nodes need root; the guest's kernel makes its own.
tar -C "$work/root" --no-same-owner --exclude='./dev/*' -xf "$work/root.tar" ||
  die "the packages could not be unpacked below $target; is the disk full?"
rm "$work/root.tar"
chmod -R u+rwX "$work/root"

say "making the initrd"
release=$(ls "$work/root/lib/modules")
mkdir -p "$work/out" "$work/initrd/bin" "$work/initrd/modules"
cp "$work/root/boot/vmlinuz-$release" "$work/out/vmlinuz"
cp "$work/root/bin/busybox" "$work/initrd/bin/busybox"
cp "$here/init" "$work/initrd/init"
chmod 755 "$work/initrd/init"
number=10
for module in $modules; do
  file=$(find "$work/root/lib/modules/$release" -name "$module.ko")
  [ -n "$file" ] || die "the kernel $release has no module $module; name another kernel package in this script."
  cp "$file" "$work/initrd/modules/$number-$module.ko"
  number=$((number + 1))
done
(cd "$work/initrd" && find . | LC_ALL=C sort | cpio --quiet -o -H newc -R 0:0) > "$work/out/initrd"

say "making the root file system"
{
  echo "kernel=$release"
  for package in apache2-bin apache2-utils iperf3 fio; do
    # A package's changelog begins "NAME (VERSION) ..."; some share another package's.
    zcat "$work/root/usr/share/doc/$package"/changelog*.gz 2> /dev/null | sed -n "1s/.*(\(.*\)).*/$package=\1/p"
  done
} > "$work/out/versions"
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

rm -f "$target/stamp"
mv "$work/out"/* "$target/"
echo "$stamp" > "$target/stamp"
say "made in $target"
