#!/bin/bash
# Installs the packages of a directory in a clean Debian root, uses them there as an ordinary user, removes them, and
# finds nothing left (in_root.sh has the steps).
# Usage: packaging/clean_root.sh DIRECTORY
#
# Runs as root, or as a user who may have namespaces of users with further ids (newuidmap, /etc/subuid). The root is a
# minimal one of mmdebstrap's with all the packages that haul's depend on downloaded, not installed. It is kept for a week
# in ${XDG_CACHE_HOME:-~/.cache}/haul/packages, so that the next run needs no network.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] && ls "$1"/*.deb > /dev/null 2>&1 || {
  echo "usage: packaging/clean_root.sh DIRECTORY, which holds haul's packages (make deb builds them)" >&2
  exit 2
}
debs=$(cd "$1" && pwd)
suite=bookworm
# What in_root.sh installs as well.
extra="gcc libc6-dev pkg-config"
command -v mmdebstrap > /dev/null || { echo "haul: mmdebstrap is missing; install it" >&2; exit 1; }

# Namespaces of their own: what is mounted or left running there ends with them.
spaces=(--mount --pid --fork --kill-child)
[ "$(id -u)" = 0 ] || spaces+=(--map-root-user --map-auto)
if ! unshare "${spaces[@]}" true 2> /dev/null; then
  echo "skipped: the packages are not installed in a clean root, since this user may not have namespaces; root may"
  exit 0
fi

cache=${XDG_CACHE_HOME:-$HOME/.cache}/haul/packages
needed=$(for deb in "$debs"/*.deb; do dpkg-deb -f "$deb" Package Depends; done)
stamp=$({ cat "$0"; date +%G-%V; echo "$needed"; } | sha256sum | cut -c -16)
base=$cache/root-$stamp.tar
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ ! -s "$base" ]; then
  mkdir -p "$cache"
  rm -f "$cache"/root-*
  echo "haul: making a clean root (two minutes; it is kept in $cache)"
  mkdir "$work/debs"
  cp "$debs"/*.deb "$work/debs"
  mmdebstrap --quiet --format=tar --variant=apt --skip=cleanup/apt --customize-hook="copy-in $work/debs /tmp" \
    --customize-hook="chroot \"\$1\" sh -c 'apt-get -qq -y --download-only --no-install-recommends install /tmp/debs/*.deb $extra'" \
    --customize-hook='rm -r "$1/tmp/debs"' "$suite" "$base.new" > "$work/log" 2>&1 || {
    tail -n 5 "$work/log" >&2
    echo "haul: mmdebstrap cannot make a root; its last lines are above: check the network and its proxy" >&2
    exit 1
  }
  mv "$base.new" "$base"
fi

unshare "${spaces[@]}" sh -eu -c '
  mount -t tmpfs -o mode=755 haul "$1"
  tar -C "$1" --exclude="./dev/*" -xf "$2"
  for device in null zero full random urandom tty; do
    : > "$1/dev/$device"
    mount --bind "/dev/$device" "$1/dev/$device"
  done
  ln -s /proc/self/fd "$1/dev/fd"
  mkdir "$1/dev/shm" "$1/packages"
  mount -t tmpfs -o mode=1777 haul "$1/dev/shm"
  mount -t proc haul "$1/proc"
  mount --rbind /sys "$1/sys"
  cp "$3"/*.deb "$4/in_root.sh" "$4/../examples/copy"/* "$1/packages"
  (cd "$1/packages" && dpkg-scanpackages --multiversion . > Packages 2> /dev/null)
  exec chroot "$1" /packages/in_root.sh' sh "$work" "$base" "$debs" "$here"
